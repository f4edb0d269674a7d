import { afterAll, beforeAll, expect, it } from 'vitest';

import { expectDrained, expectNoneDied } from '../support/expect-drained.js';
import { BRISK_ATTEMPTS, openPlatform, type Platform, untilHealth } from '../support/platform.js';
import { type PrivatePostgres, startPrivatePostgres } from '../support/private-postgres.js';
import type { Receiver } from '../support/receiver.js';
import { waitFor } from '../support/wait-for.js';

/** The most connections that each pool may have, by the name it gives itself. */
const POOL_SIZES = {
  'waybill-api': 12,
  'waybill-api-accept': 10,
  'waybill-api-auth': 2,
  'waybill-api-filtered': 6,
  'waybill-api-keyed': 4,
  'waybill-api-platform': 4,
  'waybill-dispatcher': 5,
  'waybill-dispatcher-listen': 1,
};

let postgres: PrivatePostgres;
let platform: Platform;
let receiver: Receiver;
beforeAll(async () => {
  postgres = await startPrivatePostgres();
  platform = await openPlatform({ database: postgres });
  receiver = await platform.startReceiver();
  await Promise.all([platform.bootApi(), platform.bootDispatcher()]);
  await platform.addEndpoint(receiver.url);
});
afterAll(async () => {
  await platform.close();
  await postgres.close();
});

async function connections(): Promise<Record<string, number>> {
  const { rows } = await postgres.pool.query<{ name: string; count: number }>(
    `select application_name as name, count(*)::int as count from pg_stat_activity
     where application_name like 'waybill-%' and application_name <> 'waybill-test' group by 1`,
  );
  return Object.fromEntries(rows.map(({ name, count }) => [name, count]));
}

async function expectPoolsNormal(): Promise<void> {
  const open = await connections();
  expect(open['waybill-dispatcher-listen']).toBe(1);
  const tooMany = Object.entries(open).filter(
    ([name, count]) => count > (POOL_SIZES[name as keyof typeof POOL_SIZES] ?? 0),
  );
  expect(tooMany).toEqual([]);
}

async function expectDelivered(order: number): Promise<void> {
  const event = await platform.publish({ order });
  await receiver.waitFor(() => receiver.requestsFor(event.deliveries[0]!.id).length > 0, 10_000);
}

it('[H16] both apps outlive the loss of all their idle connections', async () => {
  await expectDelivered(1);
  const { rows } = await postgres.pool.query<{ ended: boolean }>(
    `select pg_terminate_backend(pid) as ended from pg_stat_activity
     where application_name like 'waybill-%' and application_name <> 'waybill-test'`,
  );
  // Accept, read, entities, dispatcher, LISTEN: at least one connection of each was lost.
  expect(rows.length).toBeGreaterThanOrEqual(5);
  await Promise.all(platform.apps.map((app) => untilHealth(app, '/readyz', 200)));
  await expectDelivered(2);
  await waitFor(async () => (await connections())['waybill-dispatcher-listen'] === 1, {
    what: 'a new LISTEN connection',
  });
  await expectPoolsNormal();
  expectNoneDied(platform);
  const text = platform.apps.map((app) => app.logText()).join('');
  expect(text).toMatch(/"event":"(database\.connection_lost|listen\.lost)"/);
});

it.each([1, 2])(
  '[H16] [F2] both apps outlive a crash of PostgreSQL with a request in flight (time %d)',
  async (time) => {
    receiver.hold();
    const seen = receiver.requests.length;
    const event = await platform.publish({ order: time, held: true });
    await receiver.waitFor(seen + 1);
    expect(receiver.held).toBe(1);
    await postgres.stop('immediate');
    await Promise.all(platform.apps.map((app) => untilHealth(app, '/readyz', 503)));
    // Its outcome comes while there is no database to record it in.
    receiver.release(200);
    await postgres.start();
    await Promise.all(platform.apps.map((app) => untilHealth(app, '/readyz', 200)));
    await expectDelivered(10 + time);
    await platform.untilState(event.deliveries[0]!.id, 'succeeded');
    await expectDrained(platform, { attemptLimit: BRISK_ATTEMPTS });
    await waitFor(async () => (await connections())['waybill-dispatcher-listen'] === 1, {
      what: 'a new LISTEN connection',
    });
    await expectPoolsNormal();
  },
);
