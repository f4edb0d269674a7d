import { describe, expect, it } from 'vitest';

import { expectSettled } from '../support/expect-settled.js';
import { readGauge } from '../support/read-gauge.js';
import { startReceiver } from '../support/receiver.js';
import { seedBacklog } from '../support/seed-backlog.js';
import { SIZES } from '../support/sizes.js';
import { openStage, QUICK, type Stage } from '../support/stage.js';
import { DISCOVER } from '../support/statements.js';
import { waitFor } from '../support/wait-for.js';

const looksOf = (stage: Stage): number =>
  [...stage.proxy.statements].find(([sql]) => sql.includes(DISCOVER))?.[1] ?? 0;

const livingOf = async (stage: Stage): Promise<number> =>
  (await stage.pool.query('select from waybill.replicas')).rowCount!;

describe.concurrent('lanes', { timeout: 120_000 }, () => {
  it('[row 25] endpoints that answer in 2 s get every event once, under the defaults', async ({
    onTestFinished,
  }) => {
    const stage = await openStage(onTestFinished);
    stage.receiver.answer({ status: 200, delayMs: 2_000 });
    for (let number = 1; number < 5; number += 1) await stage.addEndpoint(`${stage.receiver.url}/${number}`);
    const dispatcher = await stage.boot({});
    const published = await stage.publish(SIZES.slowReceiverEvents / 5);
    expect(published).toHaveLength(SIZES.slowReceiverEvents);
    await waitFor(async () => (await readGauge(dispatcher, 'waybill_dispatcher_slow_lane')) > 0, {
      what: 'the slow lane to be used',
    });
    await expectSettled(stage, { attemptLimit: 1, timeoutMs: 60_000 });
    expect(stage.receiver.requests).toHaveLength(SIZES.slowReceiverEvents);
    expect(stage.receiver.maxOpenPerDelivery).toBe(1);
  });

  it('[H05] an endpoint that hangs is in the slow lane after a second, and out of it after a quick answer', async ({
    onTestFinished,
  }) => {
    const stage = await openStage(onTestFinished);
    const dispatcher = await stage.boot({
      ...QUICK,
      WAYBILL_ATTEMPT_TIMEOUT_MS: '20000',
      WAYBILL_LEASE_MS: '30000',
    });
    const inSlowLane = () => readGauge(dispatcher, 'waybill_dispatcher_slow_lane');
    stage.receiver.hold();
    await stage.publish(1);
    await stage.receiver.waitFor(1);
    await waitFor(async () => (await inSlowLane()) === 1, { what: 'the attempt to change its lane' });

    // Its endpoint is known for it now: the next attempt begins there, long before its second is over.
    await stage.publish(1);
    await stage.receiver.waitFor(2);
    const arrivedAt = performance.now();
    expect(await inSlowLane()).toBe(2);
    expect(performance.now() - arrivedAt).toBeLessThan(1_000);

    stage.receiver.release(200);
    await waitFor(async () => (await readGauge(dispatcher, 'waybill_dispatcher_in_flight')) === 0, {
      what: 'both attempts to end',
    });
    // A quick answer, and it is one of the others again.
    await stage.publish(1);
    await stage.receiver.waitFor(3);
    stage.receiver.hold();
    await stage.publish(1);
    await stage.receiver.waitFor(4);
    expect(await inSlowLane()).toBe(0);
    stage.receiver.release(200);
    await expectSettled(stage, { attemptLimit: 1 });
  });
});

describe('sockets', () => {
  it('[row 70] [H23] are 2,048 at most, leave room beside a full slow one, and end within the grace time', async ({
    onTestFinished,
  }) => {
    const stage = await openStage(onTestFinished);
    const hanging = await startReceiver({ answer: 'hang' });
    onTestFinished(() => hanging.close());
    const spread = { tenants: 20, endpointsPerTenant: 1, dueRows: 3_000, finishedRows: 0, url: hanging.url };
    await seedBacklog(stage.pool, spread);
    const dispatcher = await stage.boot({
      WAYBILL_CONCURRENCY: '1024',
      WAYBILL_SLOW_CONCURRENCY: '1024',
      WAYBILL_ENDPOINT_CONCURRENCY: '2048',
      WAYBILL_ATTEMPT_TIMEOUT_MS: '60000',
      WAYBILL_LEASE_MS: '120000',
      WAYBILL_GRACE_MS: '500',
    });
    const inSlowLane = () => readGauge(dispatcher, 'waybill_dispatcher_slow_lane');
    await waitFor(async () => (await inSlowLane()) >= 768, { what: 'as much as claims may put there' });
    // Four hundred more that nobody knows for it yet: what they take fills the slow lane, and stays in the fast one.
    await seedBacklog(stage.pool, { ...spread, endpointsPerTenant: 20 });
    await waitFor(async () => (await inSlowLane()) === 1_024, { what: 'a full slow lane' });
    await hanging.waitFor(1_100);
    await stage.publish(20);
    await stage.receiver.waitFor(20);
    expect(await inSlowLane()).toBe(1_024);
    expect(hanging.maxOpen).toBeGreaterThan(1_024);
    expect(hanging.maxOpen).toBeLessThanOrEqual(2_048);
    const rss = await readGauge(dispatcher, 'waybill_process_resident_memory_bytes');
    expect(rss).toBeLessThan(300_000_000);
    const stoppedAt = performance.now();
    expect(await dispatcher.stop()).toMatchObject({ code: 0 });
    // 500 ms of grace; what follows is bounded by 5 s.
    expect(performance.now() - stoppedAt).toBeLessThan(5_500);
  });
});

describe.concurrent('dispatchers', { timeout: 120_000 }, () => {
  it('[row 70] share an endpoint’s cap, take over the share of one that is silent for 15 s, and leave the count when they stop', async ({
    onTestFinished,
  }) => {
    const stage = await openStage(onTestFinished);
    await stage.pool.query('update waybill.endpoints set concurrency = 4');
    const env = {
      ...QUICK,
      WAYBILL_ATTEMPT_TIMEOUT_MS: '60000',
      WAYBILL_LEASE_MS: '90000',
      WAYBILL_GRACE_MS: '0',
    };
    const [survivor, victim] = await Promise.all([stage.boot(env), stage.boot(env)]);
    await waitFor(
      async () =>
        (
          await stage.pool.query(
            `select count(*) from waybill.replicas
             having count(*) = 2 and min(heartbeat_at) > max(started_at)`,
          )
        ).rowCount === 1,
      { what: 'both to have counted each other' },
    );
    const inFlight = () =>
      Promise.all([survivor, victim].map((app) => readGauge(app, 'waybill_dispatcher_in_flight')));
    stage.receiver.hold();
    await stage.publish(20);
    await waitFor(async () => (await inFlight()).join() === '2,2', { what: 'two in flight at each' });
    // Neither takes more, however often it looks.
    const looks = looksOf(stage) + 20;
    await waitFor(() => looksOf(stage) >= looks, { what: 'twenty more looks' });
    expect(await inFlight()).toEqual([2, 2]);

    await victim.kill();
    expect(await livingOf(stage)).toBe(2);
    await stage.pool.query(
      // The survivor's next heartbeat, 2 s away at most, takes this back for itself.
      `update waybill.replicas set heartbeat_at = heartbeat_at - interval '15 seconds'`,
    );
    await waitFor(async () => (await readGauge(survivor, 'waybill_dispatcher_in_flight')) === 4, {
      what: 'the whole cap at the survivor',
    });
    expect(await livingOf(stage)).toBe(2);
    await survivor.stop();
    expect(await livingOf(stage)).toBe(1);
  });

  it('look at everything anew after the database was away', async ({ onTestFinished }) => {
    const stage = await openStage(onTestFinished);
    await stage.boot({ ...QUICK, WAYBILL_POLL_MS: '60000' });
    await waitFor(() => looksOf(stage) >= 1, { what: 'the first look' });
    await stage.publish(1);
    await stage.receiver.waitFor(1);
    // Older than any look goes back to; the sweep’s next round is a minute away.
    await stage.publish(1, { hint: false });
    await stage.pool.query(`update waybill.delivery_queue set due_at = now() - interval '1 hour'`);
    const look = async (): Promise<void> => {
      const looks = looksOf(stage);
      await stage.pool.query(`select pg_notify('waybill_due', '')`);
      await waitFor(() => looksOf(stage) > looks, { what: 'another look' });
    };
    for (let round = 0; round < 3; round += 1) await look();
    expect(stage.receiver.requests).toHaveLength(1);
    const away = stage.proxy.on(DISCOVER, { moment: 'before', action: 'cut' });
    await stage.pool.query(`select pg_notify('waybill_due', '')`);
    await away.hit;
    await stage.receiver.waitFor(2);
    await expectSettled(stage, { attemptLimit: 1 });
  });
});
