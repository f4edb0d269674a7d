import { describe, expect, it } from 'vitest';

import type { RunningApp } from '../support/apps.js';
import { expectSettled } from '../support/expect-settled.js';
import { openStage, QUICK, type Stage } from '../support/stage.js';
import { waitFor } from '../support/wait-for.js';

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

async function inFlightOf({ url }: RunningApp): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text();
  return Number(/^waybill_dispatcher_in_flight (\d+)/m.exec(text)?.[1]);
}

/** Nothing was dropped: each event arrived, and each delivery is known to have succeeded. */
async function expectAllArrived(stage: Stage): Promise<void> {
  const settled = await expectSettled(stage, { attemptLimit: ATTEMPTS, timeoutMs: 30_000 });
  expect(stage.receiver.uniqueDeliveries().length).toBe(EVENTS);
  const states = new Map<string, number>();
  for (const { state } of settled.values()) states.set(state, (states.get(state) ?? 0) + 1);
  expect([...states]).toEqual([['succeeded', EVENTS]]);
}

describe.concurrent('SIGKILL', { timeout: 120_000 }, () => {
  it('[row 21] [F1] of the dispatcher with deliveries in progress loses none of 200', async ({
    onTestFinished,
  }) => {
    const stage = await openCrashStage(onTestFinished);
    const first = await stage.boot(ENV);
    await stage.publish(EVENTS);
    await stage.receiver.waitFor(60);
    await first.kill();
    await stage.untilSessionsEnded();
    const inProgress = await stage.countClaimed();
    expect(inProgress).toBeGreaterThan(0);
    expect(stage.receiver.uniqueDeliveries().length).toBeLessThan(EVENTS);
    await stage.boot(ENV);
    await expectAllArrived(stage);
    expect((await readLapsed(stage)).length).toBe(inProgress);
  });

  it('[row 21] [F1] of two dispatchers out of three, one after the other, loses none of 200', async ({
    onTestFinished,
  }) => {
    const stage = await openCrashStage(onTestFinished);
    const [first, second] = await Promise.all([stage.boot(ENV), stage.boot(ENV), stage.boot(ENV)]);
    await stage.publish(EVENTS);
    const claimsAtKills: string[][] = [];
    for (const victim of [first, second]) {
      await stage.receiver.waitFor(stage.receiver.requests.length + 30);
      // Nothing ends meanwhile: what is in flight when it is counted is in flight when its worker dies.
      stage.receiver.hold();
      await waitFor(async () => (await inFlightOf(victim)) >= 3, { what: 'a victim in mid-send' });
      victim.pause();
      claimsAtKills.push(await readClaims(stage));
      await victim.kill();
      stage.receiver.release();
    }
    expect(stage.receiver.uniqueDeliveries().length).toBeLessThan(EVENTS);
    await expectAllArrived(stage);
    // Of what was claimed when a victim stood still, its own share lapsed, and only that.
    const lapsed = new Set(await readLapsed(stage));
    for (const claims of claimsAtKills)
      expect(claims.filter((claim) => lapsed.has(claim)).length).toBeGreaterThan(0);
  });
});

/** Every claim of this moment: a delivery and the number of its attempt. */
async function readClaims(stage: Stage): Promise<string[]> {
  const { rows } = await stage.pool.query<{ claim: string }>(
    `select event_id || ' ' || attempt_count as claim from waybill.delivery_queue where claim_token is not null`,
  );
  return rows.map(({ claim }) => claim);
}

/** Every claim whose lease ran out. */
async function readLapsed(stage: Stage): Promise<string[]> {
  const { rows } = await stage.pool.query<{ claim: string }>(
    `select event_id || ' ' || number as claim from waybill.attempts where outcome = 'lease_expired'`,
  );
  return rows.map(({ claim }) => claim);
}
