import { describe, expect, it } from 'vitest';

import { expectSettled } from '../support/expect-settled.js';
import { openStage, QUICK_ATTEMPTS } from '../support/stage.js';
import { CLAIM, FIND_LAPSED, RECORD } from '../support/statements.js';
import { waitFor } from '../support/wait-for.js';

describe.concurrent('while the database is away', { timeout: 120_000 }, () => {
  it('[F6] [F7] outcomes are kept beyond their leases, and nothing that arrived is sent again', async ({
    onTestFinished,
  }) => {
    const stage = await openStage(onTestFinished);
    const { proxy, receiver, pool } = stage;
    const app = await stage.boot();
    receiver.hold();
    await stage.publish(30);
    await receiver.waitFor(30);
    await proxy.refuse(true);
    proxy.cutAll();
    receiver.release(200);
    // The test's own connection does not lead through the proxy: it sees the leases lapse unrecorded.
    const lapsed = async (): Promise<boolean> =>
      (await pool.query('select from waybill.delivery_queue where lease_until < now()')).rowCount === 30;
    await waitFor(lapsed, { what: 'all leases to lapse' });
    expect(app.logs().some(({ event }) => event === 'record.failed')).toBe(true);
    await proxy.refuse(false);
    const settled = await expectSettled(stage, { attemptLimit: QUICK_ATTEMPTS });
    for (const delivery of settled.values())
      expect(delivery).toMatchObject({ state: 'succeeded', outcomes: ['succeeded'] });
    expect(receiver.requests.length).toBe(30);

    // And work goes on, without a restart.
    await stage.publish(10);
    await expectSettled(stage, { attemptLimit: QUICK_ATTEMPTS });
    expect(receiver.requests.length).toBe(40);
  });

  it('[F6] reap leaves claims alone whose outcomes could not be recorded yet', async ({ onTestFinished }) => {
    const stage = await openStage(onTestFinished);
    const { proxy, receiver, pool } = stage;
    const app = await stage.boot();
    const lost = proxy.on(RECORD, { moment: 'before', action: 'cut', times: Infinity });
    await stage.publish(5);
    await receiver.waitFor(5);
    await waitFor(
      async () =>
        (await pool.query('select from waybill.delivery_queue where lease_until < now()')).rowCount === 5,
      { what: 'all leases to lapse' },
    );
    const reapLooks = (): number =>
      [...proxy.statements].find(([sql]) => sql.includes(FIND_LAPSED))?.[1] ?? 0;
    const failures = (): number => app.logs().filter(({ event }) => event === 'record.failed').length;
    const [looks, before] = [reapLooks(), failures()];
    // By now each try is some 2 s after the one before, and reap looks each second.
    await waitFor(() => failures() >= before + 2, { what: 'two more failed records' });
    await waitFor(() => reapLooks() > looks + 1, { what: 'reap to look at them twice' });
    expect(app.logs().filter(({ event }) => event === 'claim.reaped')).toEqual([]);
    lost.remove();
    const settled = await expectSettled(stage, { attemptLimit: 1 });
    for (const delivery of settled.values()) expect(delivery.outcomes).toEqual(['succeeded']);
    expect(receiver.requests.length).toBe(5);
  });

  it('[F6] a claim whose answer was lost lapses, is counted, and its deliveries still arrive', async ({
    onTestFinished,
  }) => {
    const stage = await openStage(onTestFinished);
    const lost = stage.proxy.on(CLAIM, { moment: 'after', action: 'cut' });
    await stage.boot();
    await stage.publish(10);
    const settled = await expectSettled(stage, { attemptLimit: QUICK_ATTEMPTS });
    expect(lost.hits).toBe(1);
    for (const delivery of settled.values()) expect(delivery.state).toBe('succeeded');
    const outcomes = [...settled.values()].map((delivery) => delivery.outcomes.join());
    expect(outcomes).toContain('lease_expired,succeeded');
    expect(stage.receiver.requests.length).toBe(10);
  });
});
