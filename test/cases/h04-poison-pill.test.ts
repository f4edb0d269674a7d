import { expect, it } from 'vitest';

import { expectSettled } from '../support/expect-settled.js';
import { openStage, QUICK } from '../support/stage.js';

const ATTEMPTS = 3;
const POISON = '{"poison":true}';

it(
  '[H04] [F1] a delivery that kills its worker is dead at its limit, and the others arrive',
  { timeout: 120_000 },
  async ({ onTestFinished }) => {
    const stage = await openStage(onTestFinished);
    // Waits that part 21 deliveries by some 100 ms: whoever is sent beside the poison again and again dies with it.
    const env = { ...QUICK, WAYBILL_POLL_MS: '20', WAYBILL_RETRY_SCHEDULE: '1,2' };
    let kills = 0;
    const over = new AbortController();
    onTestFinished(async () => over.abort());
    // The newest dispatcher: the poison may reach the receiver before its boot is known to be done.
    let newest = stage.boot(env);
    const supervise = async (): Promise<void> => {
      for (let starts = 0; starts < ATTEMPTS; starts += 1) {
        const victim = await newest;
        await victim.exited;
        if (over.signal.aborted) return;
        newest = stage.boot(env);
      }
    };
    stage.receiver.onRequest(async ({ body }) => {
      if (body.toString('utf8') !== POISON) return;
      kills += 1;
      await (await newest).kill();
    });
    await newest;
    const supervisor = supervise();
    const [poison, ...others] = await stage.publish([
      POISON,
      ...Array.from({ length: 20 }, (_, index) => `{"order":${index}}`),
    ]);
    const settled = await expectSettled(stage, { attemptLimit: ATTEMPTS, timeoutMs: 40_000 });
    expect(kills).toBe(ATTEMPTS);
    await supervisor;
    expect(stage.receiver.requestsFor(poison!.wireId).length).toBe(ATTEMPTS);
    expect(settled.get(poison!.deliveryId)).toMatchObject({
      state: 'dead',
      outcomes: ['lease_expired', 'lease_expired', 'lease_expired'],
    });
    for (const { deliveryId } of others) expect(settled.get(deliveryId)!.state).toBe('succeeded');
    const { rows } = await stage.pool.query(
      `select l.reason, a.error from waybill.dead_letters l join waybill.attempts a using (tenant_id, event_id, endpoint_id) where a.number = 3`,
    );
    expect(rows).toEqual([{ reason: 'exhausted', error: expect.stringContaining('The worker died') }]);
  },
);
