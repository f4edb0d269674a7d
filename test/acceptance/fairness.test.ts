import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import type { RunningApp } from '../support/apps.js';
import { readGauge } from '../support/read-gauge.js';
import { startReceiver, type Answering, type Receiver } from '../support/receiver.js';
import { seedBacklog } from '../support/seed-backlog.js';
import { SIZES } from '../support/sizes.js';
import { openStage, type Stage } from '../support/stage.js';
import { waitFor } from '../support/wait-for.js';

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

describe.each([
  ['with circuits', {}],
  ['without circuits', { WAYBILL_CIRCUIT_FAILURES: '0' }],
] as const)('%s, a tenant in trouble', (_kind, env) => {
  const cleanUps: (() => Promise<void>)[] = [];
  let stage: Stage;
  let dispatcher: RunningApp;

  beforeAll(async () => {
    stage = await openStage((cleanUp) => void cleanUps.push(cleanUp));
    dispatcher = await stage.boot({ WAYBILL_POLL_MS: '100', ...env });
  });
  afterAll(async () => {
    for (const cleanUp of cleanUps) await cleanUp();
  });

  async function startTrouble(tenants: number, endpointsPerTenant: number, answer: Answering): Promise<Receiver> {
    const receiver = await startReceiver({ answer });
    cleanUps.unshift(() => receiver.close());
    const dueRows = SIZES.foreignBacklogRows;
    await seedBacklog(stage.pool, { tenants, endpointsPerTenant, dueRows, finishedRows: 0, url: receiver.url });
    return receiver;
  }

  it('[row 70] whose endpoint hangs delays nobody else by a second', async () => {
    const hanging = await startTrouble(1, 1, 'hang');
    const waitedMs = await publishUntil(
      stage,
      async () => (await readGauge(dispatcher, 'waybill_dispatcher_slow_lane')) > 0,
    );
    console.log(waitedMs.length, waitedMs.toSorted((a,b)=>b-a).slice(0,8).map(Math.round));
    expect(Math.max(...waitedMs)).toBeLessThan(DEADLINE_MS);
    expect(hanging.maxOpen).toBe(64);
  });

  it('[row 70] whose endpoint answers 500 at once delays nobody else by a second', async () => {
    const failing = await startTrouble(1, 1, 500);
    const waitedMs = await publishUntil(stage, async () => failing.requests.length >= 5);
    console.log(waitedMs.length, waitedMs.toSorted((a,b)=>b-a).slice(0,8).map(Math.round));
    expect(Math.max(...waitedMs)).toBeLessThan(DEADLINE_MS);
  });

  it('[row 70] and nineteen others, whose endpoints hang together, delay nobody else by a second', async () => {
    const hanging = await startTrouble(20, 20, 'hang');
    const waitedMs = await publishUntil(
      stage,
      async () => (await readGauge(dispatcher, 'waybill_dispatcher_slow_lane')) >= 900,
    );
    console.log(waitedMs.length, waitedMs.toSorted((a,b)=>b-a).slice(0,8).map(Math.round));
    expect(Math.max(...waitedMs)).toBeLessThan(DEADLINE_MS);
    expect(hanging.maxOpen).toBeGreaterThan(800);
  });
});
