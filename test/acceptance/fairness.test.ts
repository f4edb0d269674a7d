import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import type { RunningApp } from '../support/apps.js';
import { readGauge } from '../support/read-gauge.js';
import { startReceiver, type Answering, type Receiver } from '../support/receiver.js';
import { seedBacklog } from '../support/seed-backlog.js';
import { SIZES } from '../support/sizes.js';
import { openStage, type Stage } from '../support/stage.js';

/** Row 70's own deadline, from the commit to the arrival. */
const DEADLINE_MS = 1_000;
/** What B publishes once the trouble stands, after all that it published while it was building up. */
const EVENTS = 30;

/**
 * The stage's own tenant publishes one event after another, each as soon as the last one has arrived, until the
 * trouble stands and then some more. Gives the time from commit to arrival of each.
 */
async function publishUntil(stage: Stage, troubleStands: () => Promise<boolean>): Promise<number[]> {
  const waitedMs: number[] = [];
  for (let left = EVENTS; left > 0;) {
    const before = stage.receiver.requests.length;
    await stage.publish(1);
    const acceptedAt = performance.timeOrigin + performance.now();
    await stage.receiver.waitFor(before + 1);
    waitedMs.push(stage.receiver.requests[before]!.at - acceptedAt);
    if (left < EVENTS || (await troubleStands())) left -= 1;
  }
  return waitedMs;
}

/** Few slots, so that the trouble outnumbers them at little cost: 400 endpoints hang where 64 + 256 may be in flight. */
const SLOTS = { WAYBILL_POLL_MS: '100', WAYBILL_CONCURRENCY: '64', WAYBILL_SLOW_CONCURRENCY: '256' };

/** Whose trouble: tenants, and endpoints of each. No circuit opens before an attempt has ended, which none that hangs does. */
interface Trouble {
  readonly tenants: number;
  readonly endpointsPerTenant: number;
  readonly answer: Answering;
  readonly circuits: boolean;
}

describe('a tenant in trouble', () => {
  const cleanUps: (() => Promise<void>)[] = [];
  let stage: Stage;
  let dispatcher: RunningApp;

  beforeAll(async () => {
    stage = await openStage((cleanUp) => void cleanUps.push(cleanUp));
    dispatcher = await stage.boot(SLOTS);
  });
  afterAll(async () => {
    for (const cleanUp of cleanUps) await cleanUp();
  });

  async function start({ answer, circuits, ...spread }: Trouble): Promise<Receiver> {
    const receiver = await startReceiver({ answer });
    cleanUps.unshift(() => receiver.close());
    if (!circuits)
      await stage.pool.query('alter table waybill.endpoints alter circuit_failures set default 0');
    const dueRows = SIZES.foreignBacklogRows;
    await seedBacklog(stage.pool, { ...spread, dueRows, finishedRows: 0, url: receiver.url });
    await stage.pool.query('alter table waybill.endpoints alter circuit_failures drop default');
    return receiver;
  }

  const inSlowLane = () => readGauge(dispatcher, 'waybill_dispatcher_slow_lane');

  it('[row 70] whose endpoint hangs delays nobody else by a second', async () => {
    const hanging = await start({ tenants: 1, endpointsPerTenant: 1, answer: 'hang', circuits: false });
    const waitedMs = await publishUntil(stage, async () => (await inSlowLane()) > 0);
    expect(Math.max(...waitedMs)).toBeLessThan(DEADLINE_MS);
    expect(await readGauge(dispatcher, 'waybill_dispatcher_in_flight')).toBeGreaterThan(0);
    expect(hanging.maxOpen).toBeGreaterThan(0);
    expect(hanging.maxOpen).toBeLessThanOrEqual(64);
  });

  it.each([
    ['with a circuit', true],
    ['without a circuit', false],
  ])(
    '[row 70] whose endpoint, %s, answers 500 at once delays nobody else by a second',
    async (_kind, circuits) => {
      const failing = await start({ tenants: 1, endpointsPerTenant: 1, answer: 500, circuits });
      const attempts = circuits ? 5 : 500;
      const waitedMs = await publishUntil(stage, async () => failing.requests.length >= attempts);
      expect(Math.max(...waitedMs)).toBeLessThan(DEADLINE_MS);
      // Its circuit lets out no more than what was in flight, or claimed, when it opened.
      if (circuits) expect(failing.requests.length).toBeLessThan(SIZES.foreignBacklogRows / 10);
    },
  );

  it('[row 70] and nineteen others, whose endpoints hang together, delay nobody else by a second', async () => {
    const hanging = await start({ tenants: 20, endpointsPerTenant: 20, answer: 'hang', circuits: false });
    const waitedMs = await publishUntil(stage, async () => (await inSlowLane()) > 192);
    expect(Math.max(...waitedMs)).toBeLessThan(DEADLINE_MS);
    expect(hanging.maxOpen).toBeGreaterThan(192);
    expect(hanging.maxOpen).toBeLessThanOrEqual(64 + 256);
  });

  it('[row 70] [H22] who deletes a thousand endpoints with their backlogs delays nobody else by a second', async () => {
    const deleted = await startReceiver();
    cleanUps.unshift(() => deleted.close());
    const spread = {
      tenants: 1,
      endpointsPerTenant: 1_000,
      dueRows: SIZES.foreignBacklogRows,
      finishedRows: 0,
    };
    const client = await stage.pool.connect();
    await client.query('begin');
    await seedBacklog(client, { ...spread, url: deleted.url });
    await client.query('update waybill.endpoints set deleted_at = now() where url like $1', [
      `${deleted.url}/%`,
    ]);
    await client.query('commit');
    client.release();
    const owed = `select count(*)::integer as owed from waybill.delivery_queue q
      join waybill.endpoints p on p.id = q.endpoint_id where p.deleted_at is not null`;
    const waitedMs = await publishUntil(
      stage,
      async () => (await stage.pool.query<{ owed: number }>(owed)).rows[0]!.owed < SIZES.foreignBacklogRows,
    );
    expect(Math.max(...waitedMs)).toBeLessThan(DEADLINE_MS);
    expect(deleted.requests).toEqual([]);
  });
});
