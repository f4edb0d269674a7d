import { randomUUID } from 'node:crypto';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { claimDeliveries, readRetryPolicy } from '#outbox';

import { startRawReceiver } from '../support/raw-receiver.js';
import {
  addSceneEndpoint,
  listenFor,
  openScene,
  readersOf,
  setPolicy,
  type Scene,
} from '../support/scene.js';
import { openStage, QUICK, type Stage } from '../support/stage.js';
import { CLAIM } from '../support/statements.js';
import { waitFor } from '../support/wait-for.js';

/** Leases of 5 s leave 3 s for an attempt. The platform's own schedule is none that these tests ask for. */
const ENV = {
  ...QUICK,
  WAYBILL_ATTEMPT_TIMEOUT_MS: '2500',
  WAYBILL_CONNECT_TIMEOUT_MS: '2500',
  WAYBILL_LEASE_MS: '5000',
  WAYBILL_RETRY_SCHEDULE: '7',
};
const ATTEMPT_MAX_MS = 3_000;
const HOUR_S = 3_600;
/** Between the answer and its record, on a busy machine. */
const RECORD_MS = 1_500;

let stage: Stage;
const cleanUps: (() => Promise<void>)[] = [];

beforeAll(async () => {
  stage = await openStage((cleanUp) => void cleanUps.push(cleanUp));
  await listenFor(stage, stage.endpointId, 'unused');
  await Promise.all([stage.boot(ENV), stage.boot(ENV)]);
});
afterAll(async () => {
  for (const cleanUp of cleanUps) await cleanUp();
});

const claims = (): number => [...stage.proxy.statements].find(([sql]) => sql.includes(CLAIM))?.[1] ?? 0;

/** Lets a scene's one delivery fail so often, moves its due time to now each time, and gives the waits in seconds. */
async function waitsOf(scene: Scene, failures: number): Promise<number[]> {
  const waits: number[] = [];
  await scene.publish(1);
  for (let number = 1; number <= failures; number += 1) {
    const { dueAtMs } = await scene.untilAttempt(number);
    const { rows } = await stage.pool.query<{ at: number; outcome: string }>(
      `select extract(epoch from recorded_at)::double precision * 1000 as at, outcome
       from waybill.attempts where endpoint_id = $1 and number = $2`,
      [scene.endpointId, number],
    );
    expect(rows[0]!.outcome).toBe('failed');
    // Recorded and rescheduled by one statement, with one now().
    waits.push((dueAtMs! - rows[0]!.at) / 1000);
    await stage.pool.query('update waybill.delivery_queue set due_at = now() where endpoint_id = $1', [
      scene.endpointId,
    ]);
  }
  return waits;
}

describe.concurrent('a retry policy in force', { timeout: 120_000 }, () => {
  it('[row 31] [row 33] spreads the nth wait over nothing to min(2 × 2^(n−1), 3600) s, and ends at its last attempt', async ({
    onTestFinished,
  }) => {
    const scene = await openScene(stage, onTestFinished, {
      retry: { initial_seconds: 2, cap_seconds: HOUR_S, max_attempts: 21, jitter: 'full' },
      circuit_failures: 0,
    });
    scene.receiver.answer(500);
    const waits = await waitsOf(scene, 20);
    const shares = waits.map((wait, index) => wait / Math.min(2 * 2 ** index, HOUR_S));
    expect(Math.min(...shares)).toBeGreaterThanOrEqual(0);
    expect(Math.max(...shares)).toBeLessThanOrEqual(1.001);
    // Twenty draws that are no draws, or all on one side, would be a chance of one in 500,000.
    expect(Math.max(...shares) - Math.min(...shares)).toBeGreaterThan(0.3);
    const dead = await scene.untilAttempt(21);
    expect(dead).toMatchObject({ state: 'dead', reason: 'exhausted', attempts: 21, owed: false });
    expect(scene.receiver.requests.length).toBe(21);
  });

  it('[row 32] waits 10, 20, 40, 80 s and so on to the cap of an hour, without jitter', async ({
    onTestFinished,
  }) => {
    const scene = await openScene(stage, onTestFinished, {
      retry: { initial_seconds: 10, cap_seconds: HOUR_S, max_attempts: 16, jitter: 0 },
      circuit_failures: 0,
    });
    scene.receiver.answer(500);
    const waits = await waitsOf(scene, 11);
    expect(waits.map((wait) => Math.round(wait * 10) / 10)).toEqual([
      10, 20, 40, 80, 160, 320, 640, 1_280, 2_560, 3_600, 3_600,
    ]);
  });

  it('[row 34] retries 500, 503, 408, 425, 429, a timeout and a refusal; 400, 401, 404, 409 and 301 are the last word', async ({
    onTestFinished,
  }) => {
    const transient = { schedule_seconds: [60], jitter: 0, retry_on: 'transient' };
    const policy = {
      retry: transient,
      circuit_failures: 0,
      attempt_timeout_ms: 2_000,
      connect_timeout_ms: 2_000,
    };
    const scene = await openScene(stage, onTestFinished, policy);
    const answers = [500, 503, 408, 425, 429, 'hang', 400, 401, 404, 409, 301] as const;
    const given = new Map<string, (typeof answers)[number]>();
    scene.receiver.answer(({ deliveryId }) => {
      given.set(deliveryId, answers[given.size]!);
      return given.get(deliveryId)!;
    });
    // Nobody listens at this port: it is the receiver's own, after its end.
    const gone = await startRawReceiver(() => undefined);
    await gone.close();
    const url = `http://127.0.0.1:${gone.port}/`;
    const { endpointId } = await addSceneEndpoint(stage, url, 'refused.connection', policy);
    const refused = readersOf(stage, endpointId, 'refused.connection');

    await Promise.all([scene.publish(answers.length), refused.publish(1)]);
    const rows = await scene.untilAll(['failed', 'dead']);
    const now = Date.now();
    const found = rows.map(({ id, state, attempts, reason, dueAtMs }) => [
      given.get(`dlv_${id.replaceAll('-', '')}`),
      state,
      reason,
      attempts,
      dueAtMs === null ? null : dueAtMs > now + 50_000 && dueAtMs <= now + 60_000,
    ]);
    const expected = answers.map((answer) =>
      answer === 'hang' || answer >= 500 || [408, 425, 429].includes(answer)
        ? [answer, 'failed', null, 1, true]
        : [answer, 'dead', 'rejected', 1, null],
    );
    expect(found.map(String).toSorted()).toEqual(expected.map(String).toSorted());
    expect(await refused.untilAttempt(1)).toMatchObject({ state: 'failed', attempts: 1 });
    expect(scene.receiver.requests.length).toBe(answers.length);
  });

  it('[row 33] that runs beyond the delivery’s age ends it as expired, by the age the endpoint gave it', async ({
    onTestFinished,
  }) => {
    const scene = await openScene(stage, onTestFinished, {
      retry: { schedule_seconds: [30, 30, 30], jitter: 0 },
      max_age_ms: 40_000,
    });
    scene.receiver.answer(500);
    const waits = await waitsOf(scene, 1);
    expect(waits[0]).toBeCloseTo(30, 1);
    const { rows } = await stage.pool.query<{ age: number }>(
      `select extract(epoch from expires_at - created_at)::double precision as age
       from waybill.deliveries where endpoint_id = $1`,
      [scene.endpointId],
    );
    expect(rows).toEqual([{ age: 40 }]);
    // The second failure would be retried after its end: 11 s later than it really is.
    await scene.untilAttempt(2);
    for (const table of ['deliveries', 'delivery_queue'])
      await stage.pool.query(
        `update waybill.${table} set expires_at = expires_at - interval '11 seconds' where endpoint_id = $1`,
        [scene.endpointId],
      );
    await stage.pool.query('update waybill.delivery_queue set due_at = now() where endpoint_id = $1', [
      scene.endpointId,
    ]);
    expect(await scene.untilAttempt(3)).toMatchObject({ state: 'dead', reason: 'expired', attempts: 3 });
  });

  const GARBAGE: readonly (readonly [
    what: string,
    retry: object,
    waitS: readonly [number, number] | null,
  ])[] = [
    ['a schedule of 0', { schedule_seconds: [0, 0], jitter: 0 }, [0.1, 0.1]],
    ['a schedule of −1', { schedule_seconds: [-1, -1], jitter: 0 }, [0.1, 0.1]],
    // Later than the delivery may live.
    ['a schedule of 1e12', { schedule_seconds: [1e12], jitter: 0 }, null],
    ['10,000 waits', { schedule_seconds: Array.from({ length: 10_000 }, () => 0), jitter: 0 }, [0.1, 0.1]],
    ['a jitter of 1e9', { schedule_seconds: [60, 60], jitter: 1e9 }, [60, 60]],
    ['no numbers', { schedule_seconds: ['soon', null] }, [7, 7]],
    ['nothing', {}, [7, 7]],
    [
      'a doubling from −5 to 1e300',
      { initial_seconds: -5, cap_seconds: 1e300, max_attempts: 1e9, jitter: 0 },
      [0.1, 0.1],
    ],
  ];
  it.for(GARBAGE)(
    'that SQL wrote as garbage waits finitely and is no loop: %s',
    async ([, retry, waitS], { onTestFinished }) => {
      const scene = await openScene(stage, onTestFinished, {
        retry: JSON.stringify(retry),
        circuit_failures: 0,
      });
      let asked = 0;
      // Two failures are enough to see it, and then it is over.
      scene.receiver.answer(() => ((asked += 1) <= 2 ? 500 : 200));
      if (waitS === null) {
        await scene.publish(1);
        expect(await scene.untilAttempt(1)).toMatchObject({ state: 'dead', reason: 'expired' });
        return;
      }
      const [first] = await waitsOf(scene, 1);
      expect(first).toBeGreaterThanOrEqual(waitS[0] - 0.001);
      expect(first).toBeLessThanOrEqual(waitS[1] + 0.001);
      const { waits } = readRetryPolicy(retry, {
        waits: { kind: 'schedule', delaysMs: [7_000] },
        jitter: 0,
        retryOn: 'any',
      });
      expect(waits.kind === 'schedule' ? waits.delaysMs.length : waits.maxAttempts).toBeLessThanOrEqual(100);
    },
  );

  it('ends a delivery whose counts stand near 2^31, and delays no other', async ({ onTestFinished }) => {
    const policy = {
      retry: { schedule_seconds: [0.1, 0.1], jitter: 0 },
      circuit_failures: 0,
      status: 'paused',
    };
    const scene = await openScene(stage, onTestFinished, policy);
    scene.receiver.answer(500);
    await scene.publish(3);
    for (const [counts, offset] of [
      ['attempt_count = 2147483647, cycle_attempt_count = 2147483647', 0],
      ['attempt_count = 2147483646, cycle_attempt_count = 0', 1],
    ] as const)
      await stage.pool.query(
        `update waybill.delivery_queue set ${counts}
         where event_id = (select event_id from waybill.delivery_queue where endpoint_id = $1 order by event_id offset $2 limit 1)`,
        [scene.endpointId, offset],
      );
    await setPolicy(stage, scene.endpointId, { status: 'enabled' });
    const rows = await scene.untilAll(['dead']);
    expect(rows.map(({ reason, attempts }) => [reason, attempts])).toEqual([
      ['exhausted', 2_147_483_647],
      ['exhausted', 2_147_483_647],
      ['exhausted', 3],
    ]);
    // One for the full cycle, three for each of the others.
    expect(scene.receiver.requests.length).toBe(7);
  });
});

describe.concurrent('a limit in force', { timeout: 120_000 }, () => {
  it('of a rate is shared by two dispatchers, comes near it, and costs no write a delivery', async ({
    onTestFinished,
  }) => {
    const rate = 20;
    const scene = await openScene(stage, onTestFinished, { rate_per_second: rate, status: 'paused' });
    await scene.publish(100);
    const written = await tokenVersion(scene.endpointId);
    expect(written).toBeNull();
    const before = claims();
    await setPolicy(stage, scene.endpointId, { status: 'enabled' });
    await scene.receiver.waitFor(100);
    const times = scene.receiver.requests.map(({ at }) => at);
    for (const [first, from] of times.entries())
      for (const [index, until] of times.entries())
        if (index > first && index - first + 1 > (rate * (until - from + SPREAD_MS)) / 1000 + rate)
          throw new Error(
            `${index - first + 1} requests in ${until - from} ms: ${times.map((at) => Math.round(at - from)).join(' ')}`,
          );
    // A burst of a second's worth, then the rate: 4 s for a hundred.
    const tookMs = times.at(-1)! - times[0]!;
    expect(tookMs).toBeLessThan(8_000);
    expect(tookMs).toBeGreaterThan(3_500);
    expect(claims() - before).toBeGreaterThan(0);
    await scene.untilAll(['succeeded']);
  });

  it('of a rate gives two first claims at the same moment one burst between them', async ({
    onTestFinished,
  }) => {
    for (let round = 0; round < 5; round += 1) {
      const scene = await openScene(stage, onTestFinished, { rate_per_second: 4, status: 'paused' });
      await scene.publish(40);
      await setPolicy(stage, scene.endpointId, { status: 'enabled' });
      const quota = { tenantId: scene.tenantId, endpointId: scene.endpointId, quota: 40, watermarkMs: 0 };
      const before = performance.now();
      for (let turn = 0; turn < 3; turn += 1)
        await Promise.all(
          [1, 2, 3].map(() =>
            claimDeliveries(stage.pool, [quota], { claimToken: randomUUID(), leaseMs: 60_000 }),
          ),
        );
      const claimed = (await scene.deliveries()).filter(({ attempts }) => attempts > 0).length;
      await setPolicy(stage, scene.endpointId, { status: 'paused' });
      expect(claimed).toBeGreaterThanOrEqual(4);
      expect(claimed).toBeLessThanOrEqual(4 + Math.ceil((4 * (performance.now() - before)) / 1000));
    }
  });

  it('of a rate writes its tokens once a claim, not once a delivery', async ({ onTestFinished }) => {
    const scene = await openScene(stage, onTestFinished, { rate_per_second: 10_000, status: 'paused' });
    await scene.publish(400);
    await setPolicy(stage, scene.endpointId, { status: 'enabled' });
    const updates: string[] = [];
    const watch = async () => {
      const version = await tokenVersion(scene.endpointId);
      if (version !== null && updates.at(-1) !== version) updates.push(version);
      return (await scene.deliveries()).every(({ state }) => state === 'succeeded');
    };
    await waitFor(watch, { what: 'all of them' });
    const { rows } = await stage.pool.query<{ tokens: number }>(
      'select tokens from waybill.rate_tokens where endpoint_id = $1',
      [scene.endpointId],
    );
    expect(rows[0]!.tokens).toBeLessThan(10_000);
    expect(updates.length).toBeLessThan(200);
  });

  it('of requests at once holds over two dispatchers', async ({ onTestFinished }) => {
    const scene = await openScene(stage, onTestFinished, { concurrency: 6 });
    scene.receiver.answer({ status: 200, delayMs: 30 });
    await scene.publish(120);
    await scene.untilAll(['succeeded']);
    expect(scene.receiver.maxOpen).toBeLessThanOrEqual(6);
    // Both take their halves.
    expect(scene.receiver.maxOpen).toBeGreaterThan(3);
  });

  it('of an attempt’s time is the endpoint’s own, and never longer than the lease has room for', async ({
    onTestFinished,
  }) => {
    const policy = { retry: { schedule_seconds: [60], jitter: 0 }, circuit_failures: 0 };
    const short = await openScene(stage, onTestFinished, { ...policy, attempt_timeout_ms: 600 });
    const long = await openScene(stage, onTestFinished, { ...policy, attempt_timeout_ms: 300_000 });
    for (const scene of [short, long]) scene.receiver.answer('hang');
    await Promise.all([short.publish(1), long.publish(1)]);
    await Promise.all([short.untilAttempt(1), long.untilAttempt(1)]);
    const read = async ({ endpointId }: Scene) =>
      (
        await stage.pool.query<{ outcome: string; error_kind: string; duration_ms: number }>(
          'select outcome, error_kind, duration_ms from waybill.attempts where endpoint_id = $1',
          [endpointId],
        )
      ).rows;
    for (const [scene, timeoutMs] of [
      [short, 600],
      [long, ATTEMPT_MAX_MS],
    ] as const) {
      const [attempt, ...others] = await read(scene);
      expect(others).toEqual([]);
      expect(attempt).toMatchObject({ outcome: 'failed', error_kind: 'timeout' });
      expect(attempt!.duration_ms).toBeGreaterThanOrEqual(timeoutMs - 20);
      expect(attempt!.duration_ms).toBeLessThan(timeoutMs + RECORD_MS);
      expect(scene.receiver.requests.length).toBe(1);
    }
  });

  it('of a connection’s time is the endpoint’s own: a receiver that accepts and never speaks TLS', async ({
    onTestFinished,
  }) => {
    const silent = await startRawReceiver(() => undefined);
    onTestFinished(() => silent.close());
    const policy = { connect_timeout_ms: 400, attempt_timeout_ms: 2_900, circuit_failures: 0 };
    const eventType = 'connect.silent';
    const url = `https://127.0.0.1:${silent.port}/`;
    const { endpointId } = await addSceneEndpoint(stage, url, eventType, policy);
    const scene = readersOf(stage, endpointId, eventType);
    await scene.publish(1);
    await scene.untilAttempt(1);
    const { rows } = await stage.pool.query(
      'select outcome, error_kind, duration_ms from waybill.attempts where endpoint_id = $1',
      [endpointId],
    );
    expect(rows).toMatchObject([{ outcome: 'failed', error_kind: 'connect_timeout' }]);
    expect(rows[0].duration_ms).toBeGreaterThanOrEqual(380);
    // By half a second earlier than the attempt's own time would have ended it.
    expect(rows[0].duration_ms).toBeLessThan(2_400);
    expect(silent.requests).toEqual([]);
  });
});

/** Arrivals are later than their claims by what a busy machine makes of it, not all by the same. A second burst is more. */
const SPREAD_MS = 700;

async function tokenVersion(endpointId: string): Promise<string | null> {
  const { rows } = await stage.pool.query<{ version: string }>(
    'select xmin::text as version from waybill.rate_tokens where endpoint_id = $1',
    [endpointId],
  );
  return rows[0]?.version ?? null;
}
