import { describe, expect, it } from 'vitest';

import { expectSettled } from '../support/expect-settled.js';
import { openStage, QUICK, QUICK_ATTEMPTS } from '../support/stage.js';
import { waitFor } from '../support/wait-for.js';

describe.concurrent('[H23] SIGTERM to a dispatcher', { timeout: 120_000 }, () => {
  it('[H23] [row 27] ends and records its 100 requests in flight, and none is sent twice', async ({
    onTestFinished,
  }) => {
    const stage = await openStage(onTestFinished);
    const env = {
      ...QUICK,
      WAYBILL_CONCURRENCY: '100',
      WAYBILL_TENANT_CONCURRENCY: '100',
      WAYBILL_ENDPOINT_CONCURRENCY: '100',
      WAYBILL_ATTEMPT_TIMEOUT_MS: '10000',
      WAYBILL_LEASE_MS: '20000',
    };
    const first = await stage.boot(env);
    stage.receiver.hold();
    await stage.publish(150);
    await stage.receiver.waitFor(100);
    const exited = first.kill('SIGTERM');
    await waitFor(() => first.logText().includes('dispatcher.stopping'), { what: 'the stop to begin' });
    expect(stage.receiver.held).toBe(100);
    stage.receiver.release(200);
    expect(await exited).toEqual({ code: 0, signal: null });
    expect(stage.receiver.requests.length).toBe(100);
    const { rows } = await stage.pool.query(
      'select state, count(*)::integer from waybill.deliveries group by state order by state',
    );
    expect(rows).toEqual([
      { state: 'pending', count: 50 },
      { state: 'succeeded', count: 100 },
    ]);
    await stage.boot(env);
    await expectSettled(stage, { attemptLimit: 1 });
    expect(stage.receiver.requests.length).toBe(150);
  });

  it('[H23] with a grace time shorter than the request records no failure: the leases lapse, and another tries again', async ({
    onTestFinished,
  }) => {
    const stage = await openStage(onTestFinished);
    const env = {
      ...QUICK,
      WAYBILL_ATTEMPT_TIMEOUT_MS: '2000',
      WAYBILL_LEASE_MS: '4000',
      WAYBILL_GRACE_MS: '300',
    };
    const first = await stage.boot(env);
    stage.receiver.hold();
    await stage.publish(10);
    await stage.receiver.waitFor(10);
    expect(await first.stop()).toEqual({ code: 0, signal: null });
    expect((await stage.pool.query('select from waybill.attempts')).rowCount).toBe(0);
    expect(await stage.countClaimed()).toBe(10);
    expect(first.logs().filter(({ event }) => event === 'delivery.abandoned').length).toBe(10);
    stage.receiver.release(200);
    await stage.boot(env);
    const settled = await expectSettled(stage, { attemptLimit: QUICK_ATTEMPTS });
    for (const delivery of settled.values())
      expect(delivery).toMatchObject({ state: 'succeeded', outcomes: ['lease_expired', 'succeeded'] });
    expect(stage.receiver.requests.length).toBe(20);
  });
});
