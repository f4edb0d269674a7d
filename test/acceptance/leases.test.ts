import { describe, expect, it } from 'vitest';

import { expectSettled } from '../support/expect-settled.js';
import { openStage, QUICK, QUICK_ATTEMPTS } from '../support/stage.js';
import { CLAIM, DISCOVER } from '../support/statements.js';
import { waitFor } from '../support/wait-for.js';

const EXIT_DEADLINE_MS = 25_000;

describe.concurrent('dispatchers', { timeout: 120_000 }, () => {
  it('[row 24] [F4] that are alike in every setting cannot write under each other’s claims', async ({
    onTestFinished,
  }) => {
    const stage = await openStage(onTestFinished);
    const { pool, receiver } = stage;
    const env = { ...QUICK, WAYBILL_ATTEMPT_TIMEOUT_MS: '2000', WAYBILL_LEASE_MS: '4500' };
    const a = await stage.boot(env);
    receiver.hold();
    const published = await stage.publish(5);
    await receiver.waitFor(5);
    expect(await stage.countClaimed()).toBe(5);
    a.pause();
    await stage.boot(env);
    const readQueue = async () =>
      (await pool.query('select * from waybill.delivery_queue order by event_id')).rows;
    // The second dispatcher reaps what the first holds, claims it anew and has it in flight.
    await receiver.waitFor(10);
    const queued = await readQueue();
    expect(queued.map((row) => row.attempt_count)).toEqual([2, 2, 2, 2, 2]);
    a.resume();
    const lateAttempts = async (): Promise<number> =>
      (await pool.query(`select from waybill.attempts where number = 1 and outcome = 'failed'`)).rowCount ??
      0;
    await waitFor(async () => (await lateAttempts()) === 5, { what: 'the late attempts of the first' });
    expect(await readQueue()).toEqual(queued);
    receiver.release(200);
    const settled = await expectSettled(stage, { attemptLimit: QUICK_ATTEMPTS });
    for (const { deliveryId } of published)
      expect(settled.get(deliveryId)).toMatchObject({
        state: 'succeeded',
        outcomes: ['failed', 'succeeded'],
      });
  });

  it('[row 24] share the work and never send one delivery twice', async ({ onTestFinished }) => {
    const stage = await openStage(onTestFinished);
    const env = {
      ...QUICK,
      WAYBILL_CONCURRENCY: '10',
      WAYBILL_ATTEMPT_TIMEOUT_MS: '10000',
      WAYBILL_LEASE_MS: '20000',
    };
    stage.receiver.answer({ status: 200, delayMs: 20 });
    const [a, b] = await Promise.all([stage.boot(env), stage.boot(env)]);
    await stage.publish(200);
    await expectSettled(stage, { attemptLimit: 1 });
    expect(stage.receiver.requests.length).toBe(200);
    for (const app of [a, b]) {
      const sent = app.logs().filter(({ event }) => event === 'delivery.attempt');
      expect(sent.length).toBeGreaterThan(0);
    }
  });

  it('[row 26] leave no session idle in a transaction while a receiver sleeps', async ({
    onTestFinished,
  }) => {
    const stage = await openStage(onTestFinished);
    await stage.boot({ ...QUICK, WAYBILL_ATTEMPT_TIMEOUT_MS: '10000', WAYBILL_LEASE_MS: '20000' });
    stage.receiver.hold();
    await stage.publish(20);
    await stage.receiver.waitFor(20);
    const looks = () => [...stage.proxy.statements].find(([sql]) => sql.includes(DISCOVER))?.[1] ?? 0;
    const until = looks() + 20;
    let samples = 0;
    while (looks() < until) {
      const { rows } = await stage.pool.query<{ open: number; sessions: number }>(
        `select count(*)::integer as sessions,
           count(*) filter (where state like 'idle in transaction%')::integer as open
         from pg_stat_activity
         where datname = current_database() and application_name like 'waybill-dispatcher%'`,
      );
      expect(rows[0]!.sessions).toBeGreaterThan(0);
      expect(rows[0]!.open).toBe(0);
      samples += 1;
    }
    expect(samples).toBeGreaterThan(20);
    expect(stage.receiver.held).toBe(20);
    stage.receiver.release(200);
    await expectSettled(stage, { attemptLimit: 1 });
  });

  it('[H01] send under the shortest lease that is allowed', async ({ onTestFinished }) => {
    const stage = await openStage(onTestFinished);
    await stage.boot({ ...QUICK, WAYBILL_ATTEMPT_TIMEOUT_MS: '1000', WAYBILL_LEASE_MS: '3000' });
    await stage.publish(10);
    await expectSettled(stage, { attemptLimit: QUICK_ATTEMPTS });
    expect(stage.receiver.uniqueDeliveries().length).toBe(10);
  });
});

describe.concurrent('SIGTERM', { timeout: 120_000 }, () => {
  it('[row 27] in mid-batch lets what is in flight end, claims no more and loses nothing', async ({
    onTestFinished,
  }) => {
    const stage = await openStage(onTestFinished);
    const env = {
      ...QUICK,
      // An eighth of the lane is kept for whoever comes next.
      WAYBILL_CONCURRENCY: '23',
      WAYBILL_TENANT_CONCURRENCY: '20',
      WAYBILL_SLOW_CONCURRENCY: '0',
      WAYBILL_ATTEMPT_TIMEOUT_MS: '10000',
      WAYBILL_LEASE_MS: '20000',
    };
    const first = await stage.boot(env);
    stage.receiver.hold();
    await stage.publish(100);
    await stage.receiver.waitFor(20);
    expect(await stage.countClaimed()).toBe(20);
    const exited = first.kill('SIGTERM');
    await waitFor(() => first.logText().includes('dispatcher.stopping'), { what: 'the stop to begin' });
    const { rows } = await stage.pool.query(
      `select count(*)::integer as free from waybill.delivery_queue where lease_until is null and attempt_count = 0`,
    );
    expect(rows[0].free).toBe(80);
    const startedAt = performance.now();
    stage.receiver.release(200);
    expect(await exited).toEqual({ code: 0, signal: null });
    expect(performance.now() - startedAt).toBeLessThan(EXIT_DEADLINE_MS);
    expect(stage.receiver.requests.length).toBe(20);
    expect(await stage.countClaimed()).toBe(0);
    await stage.boot(env);
    await expectSettled(stage, { attemptLimit: 1 });
    expect(stage.receiver.requests.length).toBe(100);
  });

  it('[row 27] between a claim and its first byte frees the claim at once, uncounted', async ({
    onTestFinished,
  }) => {
    const stage = await openStage(onTestFinished);
    const first = await stage.boot();
    const claimed = stage.proxy.on(CLAIM, { moment: 'after', action: 'swallow' });
    await stage.publish(10);
    await claimed.hit;
    expect(await stage.countClaimed()).toBe(10);
    const exited = first.kill('SIGTERM');
    await waitFor(() => first.logText().includes('dispatcher.stopping'), { what: 'the stop to begin' });
    claimed.release();
    expect(await exited).toEqual({ code: 0, signal: null });
    expect(claimed.hits).toBe(1);
    const { rows } = await stage.pool.query(
      'select lease_until, claim_token, attempt_count, cycle_attempt_count, due_at <= now() as due from waybill.delivery_queue',
    );
    const free = {
      lease_until: null,
      claim_token: null,
      attempt_count: 0,
      cycle_attempt_count: 0,
      due: true,
    };
    expect(rows).toEqual(Array.from({ length: 10 }, () => free));
    expect(stage.receiver.requests).toEqual([]);
    await stage.boot();
    await expectSettled(stage, { attemptLimit: 1 });
  });

  it('[row 27] [F7] ends a dispatcher whose database is away, with its deliveries still owed', async ({
    onTestFinished,
  }) => {
    const stage = await openStage(onTestFinished);
    const first = await stage.boot({ ...QUICK, WAYBILL_GRACE_MS: '1000' });
    stage.receiver.hold();
    await stage.publish(10);
    await stage.receiver.waitFor(10);
    stage.proxy.blackhole(true);
    stage.receiver.release(200);
    const startedAt = performance.now();
    expect(await first.kill('SIGTERM')).toEqual({ code: 0, signal: null });
    expect(performance.now() - startedAt).toBeLessThan(EXIT_DEADLINE_MS);
    expect(await stage.countClaimed()).toBe(10);
    // What the dead process had on its way must not arrive after all.
    stage.proxy.cutAll();
    stage.proxy.blackhole(false);
    await stage.boot();
    const settled = await expectSettled(stage, { attemptLimit: QUICK_ATTEMPTS });
    for (const delivery of settled.values())
      expect(delivery).toMatchObject({ state: 'succeeded', outcomes: ['lease_expired', 'succeeded'] });
    // What stands in for the lost attempt began with its claim and took the lease, before anybody could reap it.
    const { rows } = await stage.pool.query<{ lease_ms: number; over: boolean }>(
      `select duration_ms as lease_ms, started_at + duration_ms * interval '1 millisecond' <= recorded_at as over
       from waybill.attempts where outcome = 'lease_expired'`,
    );
    expect(rows).toEqual(
      Array.from({ length: 10 }, () => ({ lease_ms: Number(QUICK.WAYBILL_LEASE_MS), over: true })),
    );
  });
});
