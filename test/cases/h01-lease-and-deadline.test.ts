import { describe, expect, it } from 'vitest';

import { bootDispatcher, BootError } from '../support/apps.js';
import { expectSettled } from '../support/expect-settled.js';
import { openStage, QUICK } from '../support/stage.js';

describe('[H01] the lease and the deadline of an attempt', () => {
  it('[H01] must fit: a lease shorter than the request is refused at start, naming both settings', async ({
    onTestFinished,
  }) => {
    const stage = await openStage(onTestFinished);
    const env = { ...QUICK, WAYBILL_LEASE_MS: '1000', WAYBILL_ATTEMPT_TIMEOUT_MS: '5000' };
    const refusal: unknown = await bootDispatcher({ databaseUrl: stage.databaseUrl, env }).catch(
      (error: unknown) => error,
    );
    expect(refusal).toBeInstanceOf(BootError);
    const { code, output } = refusal as BootError;
    expect(code).toBe(1);
    expect(output).toContain('WAYBILL_LEASE_MS');
    expect(output).toContain('WAYBILL_ATTEMPT_TIMEOUT_MS');
  });

  it('[H01] keep two dispatchers from sending a slow request twice', async ({ onTestFinished }) => {
    const stage = await openStage(onTestFinished);
    // The shortest lease for this deadline; the receiver uses up nearly two thirds of the deadline.
    const env = { ...QUICK, WAYBILL_LEASE_MS: '5000', WAYBILL_ATTEMPT_TIMEOUT_MS: '3000' };
    stage.receiver.answer({ status: 200, delayMs: 1_900 });
    await Promise.all([stage.boot(env), stage.boot(env)]);
    await stage.publish(50);
    await expectSettled(stage, { attemptLimit: 1 });
    expect(stage.receiver.requests.length).toBe(50);
    expect(stage.receiver.maxOpenPerDelivery).toBe(1);
    expect(stage.receiver.maxOpen).toBeGreaterThan(10);
  });
});
