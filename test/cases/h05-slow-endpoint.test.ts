import { expect, it } from 'vitest';

import { readGauge } from '../support/read-gauge.js';
import { startReceiver } from '../support/receiver.js';
import { seedBacklog } from '../support/seed-backlog.js';
import { SIZES } from '../support/sizes.js';
import { openStage } from '../support/stage.js';
import { waitFor } from '../support/wait-for.js';

/** Of 20 slots, three quarters: what one tenant may hold. */
const SHARE = 15;

it('[H05] an endpoint that never answers takes its share of the slots, and another tenant’s p95 stays below 3 s', async ({
  onTestFinished,
}) => {
  const stage = await openStage(onTestFinished);
  const hanging = await startReceiver({ answer: 'hang' });
  onTestFinished(() => hanging.close());
  const dueRows = SIZES.hangingDeliveries;
  const spread = { tenants: 1, endpointsPerTenant: 1, dueRows, finishedRows: 0, url: hanging.url };
  await seedBacklog(stage.pool, spread);
  // The case has 20 slots in all, so no lane beside them.
  const dispatcher = await stage.boot({
    WAYBILL_CONCURRENCY: '20',
    WAYBILL_SLOW_CONCURRENCY: '0',
    WAYBILL_ATTEMPT_TIMEOUT_MS: '2000',
    WAYBILL_CONNECT_TIMEOUT_MS: '2000',
  });
  await hanging.waitFor(SHARE);
  expect(await readGauge(dispatcher, 'waybill_dispatcher_in_flight')).toBe(SHARE);

  const acceptedAt = new Map<string, number>();
  const publish = async (count: number): Promise<void> => {
    const deliveries = await stage.publish(count);
    const now = performance.timeOrigin + performance.now();
    for (const { wireId } of deliveries) acceptedAt.set(wireId, now);
  };
  // Half of B's events while A holds all that it may, half of them once its circuit is open.
  await publish(100);
  await stage.receiver.waitFor(100);
  await waitFor(() => dispatcher.logs().some(({ event }) => event === 'circuit.opens'), {
    what: 'the circuit of the hanging endpoint to open',
  });
  await publish(100);
  await stage.receiver.waitFor(200);

  const waitedMs = stage.receiver.requests
    .map(({ at, deliveryId }) => at - acceptedAt.get(deliveryId)!)
    .toSorted((a, b) => a - b);
  expect(waitedMs[Math.ceil(0.95 * 200) - 1]!).toBeLessThanOrEqual(3_000);
  expect(stage.receiver.uniqueDeliveries()).toHaveLength(200);
  expect(hanging.maxOpen).toBe(SHARE);
  // Its circuit spends no attempts: with a turn of 15 every 2 s it would go on and on.
  expect(hanging.requests.length).toBeLessThanOrEqual(2 * SHARE);
});
