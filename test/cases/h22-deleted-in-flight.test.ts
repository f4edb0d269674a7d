import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import type { RunningApp } from '../support/apps.js';
import { startPgProxy, type PgProxy } from '../support/pg-proxy.js';
import { BRISK, openPlatform, type Platform } from '../support/platform.js';
import type { Receiver } from '../support/receiver.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { CLAIM, DISCOVER } from '../support/statements.js';
import { waitFor } from '../support/wait-for.js';

const PENDING = 500;
/** A poll is 50 ms here; the rest is for a loaded machine. */
const WITHIN_A_POLL_MS = 1_500;

describe('an endpoint that is deleted', () => {
  let database: TestDatabase;
  let proxy: PgProxy;
  let platform: Platform;
  let dispatcher: RunningApp;
  let receiver: Receiver;

  beforeAll(async () => {
    database = await createTestDatabase();
    proxy = await startPgProxy(database.url);
    platform = await openPlatform({ database, appDatabaseUrl: proxy.url });
    await platform.bootApi();
    dispatcher = await platform.bootDispatcher({ ...BRISK, WAYBILL_ATTEMPT_TIMEOUT_MS: '2000' });
    receiver = await platform.startReceiver();
  });
  afterAll(async () => {
    await platform.close();
    await proxy.close();
    await database.drop();
  });

  const countOf = (piece: string): number =>
    [...proxy.statements].filter(([sql]) => sql.includes(piece)).reduce((sum, [, count]) => sum + count, 0);

  async function untilLookedAgain(): Promise<void> {
    const looks = countOf(DISCOVER) + 10;
    await waitFor(() => countOf(DISCOVER) >= looks, { what: 'ten more looks' });
  }

  const statesOf = async (endpointId: string): Promise<Record<string, number>> => {
    const { rows } = await platform.pool.query<{ state: string; count: number }>(
      'select state, count(*)::integer from waybill.deliveries where endpoint_id = $1 group by state',
      [endpointId.slice('ep_'.length)],
    );
    return Object.fromEntries(rows.map(({ state, count }) => [state, count]));
  };

  async function publishMany(count: number): Promise<void> {
    const events = Array.from({ length: count }, (_, number) => ({
      event_type: 'order.created',
      payload: { number },
    }));
    const answer = await platform.client.post('/v1/events/batch', { events });
    expect(answer.status === 201 ? '' : answer.text).toBe('');
  }

  /** Deletes it, and gives how long the answer took and how long all that was free took to be cancelled. */
  async function deleteAndWait(endpointId: string, cancelled: number): Promise<void> {
    const startedAt = performance.now();
    const answer = await platform.client.delete(`/v1/endpoints/${endpointId}`);
    expect(answer.status).toBe(204);
    expect(performance.now() - startedAt).toBeLessThan(WITHIN_A_POLL_MS);
    await waitFor(async () => (await statesOf(endpointId))['cancelled'] === cancelled, {
      what: 'what was pending to be cancelled',
    });
    expect(performance.now() - startedAt).toBeLessThan(2 * WITHIN_A_POLL_MS);
  }

  it.each([
    ['succeeded', 200, { succeeded: 1, cancelled: PENDING }],
    ['failed', 500, { cancelled: PENDING + 1 }],
  ])(
    '[H22] keeps an outcome in flight that %s, is owed nothing more, and hands nothing to its successor',
    async (_kind, status, states) => {
      const url = `${receiver.url}/${status}`;
      const deleted = await platform.addEndpoint(url, { concurrency: 1 });
      const seen = receiver.requests.length;
      receiver.hold();
      await publishMany(1 + PENDING);
      await receiver.waitFor(seen + 1);
      await deleteAndWait(deleted.id, PENDING);
      const successor = await platform.addEndpoint(url);
      receiver.release(status);
      await waitFor(async () => (await statesOf(deleted.id))['pending'] === undefined, {
        what: 'the outcome in flight',
      });
      await waitFor(async () => (await statesOf(deleted.id))['failed'] === undefined, {
        what: 'a retry to be cancelled',
      });
      expect(await statesOf(deleted.id)).toEqual(states);

      receiver.answer(200);
      const event = await platform.publish({ after: true });
      expect(event.deliveries.map(({ endpoint_id }) => endpoint_id)).toEqual([successor.id]);
      await platform.untilState(event.deliveries[0]!.id, 'succeeded');
      await untilLookedAgain();
      // One request of the deleted endpoint, one of the new one, and nothing else.
      expect(receiver.requests.length).toBe(seen + 2);
      expect((await platform.client.delete(`/v1/endpoints/${successor.id}`)).status).toBe(204);
    },
  );

  it('[H22] behind an open circuit is asked for no more', async () => {
    const seen = receiver.requests.length;
    receiver.answer(500);
    const policy = {
      concurrency: 1,
      circuit: { failures: 1, open_seconds: 0.1 },
      retry: { schedule_seconds: [600], jitter: 0 },
    };
    const deleted = await platform.addEndpoint(`${receiver.url}/open`, policy);
    await publishMany(20);
    await waitFor(() => dispatcher.logs().some(({ event }) => event === 'circuit.reopens'), {
      what: 'a probe that fails',
    });
    await platform.client.delete(`/v1/endpoints/${deleted.id}`);
    await waitFor(async () => (await statesOf(deleted.id))['cancelled'] === 20, {
      what: 'everything to be cancelled',
    });
    receiver.answer(200);
    await untilLookedAgain();
    const [claims, requests] = [countOf(CLAIM), receiver.requests.length];
    expect(requests).toBeGreaterThan(seen);
    await untilLookedAgain();
    expect([countOf(CLAIM), receiver.requests.length]).toEqual([claims, requests]);
  });

  it('[H22] leaves no error in the log', () => {
    const loud = dispatcher
      .logs()
      .filter(({ level, event }) => Number(level) >= 40 && !String(event).startsWith('circuit.'));
    expect(loud).toEqual([]);
  });
});
