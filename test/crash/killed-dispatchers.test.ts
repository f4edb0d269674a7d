import { describe, expect, it } from 'vitest';

import { expectSettled } from '../support/expect-settled.js';
import { openStage, QUICK, type Stage } from '../support/stage.js';

const EVENTS = 200;
const ATTEMPTS = 8;

/** The lease is the shortest there is; ten sockets keep the work going long enough to be killed in its middle. */
const ENV = {
  ...QUICK,
  WAYBILL_LEASE_MS: '2500',
  WAYBILL_ATTEMPT_TIMEOUT_MS: '500',
  WAYBILL_CONNECT_TIMEOUT_MS: '500',
  WAYBILL_CONCURRENCY: '10',
  WAYBILL_RETRY_SCHEDULE: Array.from({ length: ATTEMPTS - 1 }, () => '0.1').join(','),
};

async function openCrashStage(onTestFinished: (cleanUp: () => Promise<void>) => void): Promise<Stage> {
  const stage = await openStage(onTestFinished);
  stage.receiver.answer({ status: 200, delayMs: 40 });
  return stage;
}

/** Nothing was dropped: each event arrived, and each delivery is known to have succeeded. */
async function expectAllArrived(stage: Stage): Promise<void> {
  const settled = await expectSettled(stage, { attemptLimit: ATTEMPTS, timeoutMs: 30_000 });
  expect(stage.receiver.uniqueDeliveries().length).toBe(EVENTS);
  const states = new Map<string, number>();
  for (const { state } of settled.values()) states.set(state, (states.get(state) ?? 0) + 1);
  expect([...states]).toEqual([['succeeded', EVENTS]]);
}

describe.concurrent('SIGKILL', () => {
  it('[row 21] [F1] of the dispatcher with deliveries in progress loses none of 200', async ({
    onTestFinished,
  }) => {
    const stage = await openCrashStage(onTestFinished);
    const first = await stage.boot(ENV);
    await stage.publish(EVENTS);
    await stage.receiver.waitFor(60);
    await first.kill();
    const inProgress = await stage.countClaimed();
    expect(inProgress).toBeGreaterThan(0);
    expect(stage.receiver.uniqueDeliveries().length).toBeLessThan(EVENTS);
    await stage.boot(ENV);
    await expectAllArrived(stage);
    expect(await countLapsed(stage)).toBe(inProgress);
  });

  it('[row 21] [F1] of two dispatchers out of three, one after the other, loses none of 200', async ({
    onTestFinished,
  }) => {
    const stage = await openCrashStage(onTestFinished);
    const [first, second] = await Promise.all([stage.boot(ENV), stage.boot(ENV), stage.boot(ENV)]);
    await stage.publish(EVENTS);
    let inProgress = 0;
    for (const victim of [first, second]) {
      await stage.receiver.waitFor(stage.receiver.requests.length + 20);
      victim.pause();
      const claimed = await readClaims(stage);
      // The living work on: what is still under the same claim after 40 more requests is the paused one's.
      await stage.receiver.waitFor(stage.receiver.requests.length + 40);
      const now = new Set(await readClaims(stage));
      const heldByVictim = claimed.filter((claim) => now.has(claim)).length;
      expect(heldByVictim).toBeGreaterThan(0);
      inProgress += heldByVictim;
      await victim.kill();
    }
    await expectAllArrived(stage);
    expect(await countLapsed(stage)).toBeGreaterThanOrEqual(inProgress);
  });
});

/** Every claim of this moment: a delivery and its token. */
async function readClaims(stage: Stage): Promise<string[]> {
  const { rows } = await stage.pool.query<{ claim: string }>(
    `select delivery_id || ' ' || claim_token as claim from waybill.delivery_queue where claim_token is not null`,
  );
  return rows.map(({ claim }) => claim);
}

async function countLapsed(stage: Stage): Promise<number> {
  const { rows } = await stage.pool.query<{ lapsed: number }>(
    `select count(*)::integer as lapsed from waybill.attempts where outcome = 'lease_expired'`,
  );
  return rows[0]!.lapsed;
}
