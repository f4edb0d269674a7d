import { setTimeout as sleep } from 'node:timers/promises';

import { describe, expect, it } from 'vitest';

import { expectSettled } from '../support/expect-settled.js';
import { startPgProxy } from '../support/pg-proxy.js';
import { openStage, QUICK, type Stage } from '../support/stage.js';
import { DISCOVER } from '../support/statements.js';
import { waitFor } from '../support/wait-for.js';

const POLL_MS = 5_000;
/** Five times what was measured (under 100 ms), and far below the poll interval. */
const PROMPT_MS = 1_000;

const LISTENERS = `select pid from pg_stat_activity where datname = current_database() and application_name = 'waybill-dispatcher-listen'`;

/** Publishes and gives the time until everything has arrived. */
async function publishAndWait(stage: Stage, count: number, gapMs = 0): Promise<number> {
  const before = stage.receiver.requests.length;
  const startedAt = performance.now();
  for (let sent = 0; sent < count; sent += 1) {
    if (sent > 0 && gapMs > 0) await sleep(gapMs);
    await stage.publish(1);
  }
  await stage.receiver.waitFor(before + count);
  return performance.now() - startedAt;
}

describe.concurrent('a sleeping dispatcher', () => {
  it('[row 30] sends two events 5 ms apart at once, although it polls every 5 s only', async ({
    onTestFinished,
  }) => {
    const stage = await openStage(onTestFinished);
    await stage.boot({ ...QUICK, WAYBILL_POLL_MS: String(POLL_MS) });
    await waitFor(() => [...stage.proxy.statements.keys()].some((sql) => sql.includes(DISCOVER)), {
      what: 'the first look',
    });
    // Four rounds within one poll interval: polling could explain one of them at most.
    for (let round = 0; round < 4; round += 1)
      expect(await publishAndWait(stage, 2, 5)).toBeLessThan(PROMPT_MS);
    await expectSettled(stage, { attemptLimit: 1 });
  });

  it('[row 30] is woken by a hint that comes while it is claiming', async ({ onTestFinished }) => {
    const stage = await openStage(onTestFinished);
    await stage.boot({ ...QUICK, WAYBILL_POLL_MS: String(POLL_MS) });
    await publishAndWait(stage, 1);
    for (let round = 0; round < 4; round += 1) {
      const claiming = stage.proxy.on('as c (tenant_id, endpoint_id, quota', {
        moment: 'after',
        action: 'swallow',
      });
      await stage.publish(1);
      await claiming.hit;
      // This one commits after the claim has looked, and before the claim's answer is there.
      await stage.publish(1);
      await waitForHints(stage);
      const startedAt = performance.now();
      claiming.release();
      await stage.receiver.waitFor(1 + 2 * (round + 1));
      expect(performance.now() - startedAt).toBeLessThan(PROMPT_MS);
    }
    await expectSettled(stage, { attemptLimit: 1 });
  });

  it('[row 30] is woken by an unnamed hint that comes while it is looking', async ({ onTestFinished }) => {
    const stage = await openStage(onTestFinished);
    await stage.boot({ ...QUICK, WAYBILL_POLL_MS: String(POLL_MS) });
    await publishAndWait(stage, 1);
    const notify = () => stage.pool.query(`select pg_notify('waybill_due', '')`);
    for (let round = 0; round < 4; round += 1) {
      const looking = stage.proxy.on(DISCOVER, { moment: 'after', action: 'swallow' });
      await notify();
      await looking.hit;
      await stage.publish(1, { hint: false });
      await notify();
      await waitForHints(stage);
      const startedAt = performance.now();
      looking.release();
      await stage.receiver.waitFor(2 + round);
      expect(performance.now() - startedAt).toBeLessThan(PROMPT_MS);
    }
    await expectSettled(stage, { attemptLimit: 1 });
  });

  it('[row 29] [H17] goes on by polling while its LISTEN is gone, and listens again afterwards', async ({
    onTestFinished,
  }) => {
    const stage = await openStage(onTestFinished);
    const listenProxy = await startPgProxy(stage.databaseUrl);
    onTestFinished(() => listenProxy.close());
    const pollMs = 2_000;
    await stage.boot({
      ...QUICK,
      WAYBILL_POLL_MS: String(pollMs),
      WAYBILL_DIRECT_DATABASE_URL: listenProxy.url,
    });
    const listeners = async () => (await stage.pool.query<{ pid: number }>(LISTENERS)).rows;
    const before = await waitFor(async () => (await listeners())[0], { what: 'the listener' });

    await listenProxy.refuse(true);
    await stage.pool.query('select pg_terminate_backend($1)', [before.pid]);
    await waitFor(async () => (await listeners()).length === 0, { what: 'the end of the listener' });
    expect(await publishAndWait(stage, 3)).toBeLessThan(2 * pollMs);
    expect(await listeners()).toEqual([]);

    await listenProxy.refuse(false);
    const after = await waitFor(async () => (await listeners())[0], { what: 'a new listener' });
    expect(after.pid).not.toBe(before.pid);
    await waitFor(() => [...listenProxy.statements.values()].some((count) => count >= 2), {
      what: 'LISTEN to be said again',
    });
    for (let round = 0; round < 4; round += 1) expect(await publishAndWait(stage, 1)).toBeLessThan(PROMPT_MS);
    await expectSettled(stage, { attemptLimit: 1 });
  });
});

/** Notifications come in the order of their commits: once our own listener has a later one, the others were sent. */
async function waitForHints(stage: Stage): Promise<void> {
  const client = await stage.pool.connect();
  try {
    const heard = new Promise<void>((resolve) => client.once('notification', () => resolve()));
    await client.query('listen waybill_test');
    await client.query(`notify waybill_test`);
    await heard;
    await client.query('unlisten *');
  } finally {
    client.release();
  }
}
