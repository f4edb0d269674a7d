import { expect, it } from 'vitest';

import { expectSettled } from '../support/expect-settled.js';
import { openStage, QUICK } from '../support/stage.js';

const ATTEMPTS = 3;
const POISON = '{"poison":true}';

it('[H04] [F1] a delivery that kills its worker is dead at its limit, and the others arrive', async ({
  onTestFinished,
}) => {
  const stage = await openStage(onTestFinished);
  const env = { ...QUICK, WAYBILL_RETRY_SCHEDULE: '0.2,0.4' };
  let kills = 0;
  let over = false;
  let victim = await stage.boot(env);
  // A supervisor: whenever the dispatcher has been killed, it starts another one.
  const supervisor = (async () => {
    while (!over) {
      const { signal } = await victim.exited;
      if (signal !== 'SIGKILL' || over) return;
      victim = await stage.boot(env);
    }
  })();
  stage.receiver.onRequest(async ({ body }) => {
    if (body.toString('utf8') !== POISON) return;
    kills += 1;
    await victim.kill();
  });
  const [poison, ...others] = await stage.publish([
    POISON,
    ...Array.from({ length: 20 }, (_, index) => `{"order":${index}}`),
  ]);
  const settled = await expectSettled(stage, { attemptLimit: ATTEMPTS, timeoutMs: 40_000 });
  over = true;
  await victim.kill();
  await supervisor;
  expect(kills).toBe(ATTEMPTS);
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
});
