import { expect, it } from 'vitest';

import { expectSettled } from '../support/expect-settled.js';
import { openStage, QUICK, QUICK_ATTEMPTS } from '../support/stage.js';
import { waitFor } from '../support/wait-for.js';

it('[H02] [F4] a worker that was paused beyond its lease cannot undo what another one achieved', async ({
  onTestFinished,
}) => {
  const stage = await openStage(onTestFinished);
  const { pool, receiver } = stage;
  const a = await stage.boot(QUICK);
  receiver.hold();
  const [delivery] = await stage.publish(1);
  await receiver.waitFor(1);
  a.pause();
  expect(await stage.countClaimed()).toBe(1);
  receiver.onRequest(({ header }) => {
    // From the second attempt on requests are answered; the first stays held.
    if (header('waybill-attempt') === '2')
      receiver.release((request) => (request.header('waybill-attempt') === '1' ? 500 : 200));
  });
  await stage.boot(QUICK);
  const readState = async (): Promise<{ state: string; attempt_count: number; finished_at: Date | null }> =>
    (await pool.query('select state, attempt_count, finished_at from waybill.deliveries')).rows[0];
  await waitFor(async () => (await readState()).state === 'succeeded', { what: 'the success of the second' });
  const achieved = await readState();
  expect(achieved).toMatchObject({ state: 'succeeded', attempt_count: 2 });

  a.resume();
  await waitFor(() => a.logs().some((line) => line['event'] === 'delivery.attempt'), {
    what: 'the late record of the first',
  });
  expect(a.logs().find((line) => line['event'] === 'delivery.attempt')).toMatchObject({
    attempt: 1,
    outcome: 'failed',
    state: 'superseded',
  });
  expect(await readState()).toEqual(achieved);
  const settled = await expectSettled(stage, { attemptLimit: QUICK_ATTEMPTS });
  // The late attempt took the place of the `lease_expired` that stood in for it.
  expect(settled.get(delivery!.deliveryId)).toMatchObject({
    state: 'succeeded',
    outcomes: ['failed', 'succeeded'],
  });
  expect(receiver.requests.length).toBe(2);
});
