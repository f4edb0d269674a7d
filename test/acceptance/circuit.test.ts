import { randomUUID } from 'node:crypto';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { claimDeliveries, readDelivery } from '#outbox';

import { listenFor, openScene, readersOf, setPolicy } from '../support/scene.js';
import { seedBacklog } from '../support/seed-backlog.js';
import { SIZES } from '../support/sizes.js';
import { openStage, QUICK, type Stage } from '../support/stage.js';
import { CLAIM, DISCOVER } from '../support/statements.js';
import { startReceiver } from '../support/receiver.js';
import { waitFor } from '../support/wait-for.js';

const DISPATCHERS = 3;
/** Circuits are the endpoints' own here. An attempt may be held open while others fail. */
const ENV = { ...QUICK, WAYBILL_ATTEMPT_TIMEOUT_MS: '10000', WAYBILL_LEASE_MS: '12000' };
/** Never the reason why a delivery ends or waits. */
const TENTHS = { schedule_seconds: Array.from({ length: 40 }, () => 0.1), jitter: 0 };
const HOUR_MS = 3_600_000;
let stage: Stage;
const cleanUps: (() => Promise<void>)[] = [];

beforeAll(async () => {
  stage = await openStage((cleanUp) => void cleanUps.push(cleanUp));
  await listenFor(stage, stage.endpointId, 'unused');
  await Promise.all(Array.from({ length: DISPATCHERS }, () => stage.boot(ENV)));
});
afterAll(async () => {
  for (const cleanUp of cleanUps) await cleanUp();
});

const countOf = (piece: string): number =>
  [...stage.proxy.statements].find(([sql]) => sql.includes(piece))?.[1] ?? 0;

/** Waits until the dispatchers have looked around some more. */
async function untilLooked(times: number): Promise<void> {
  const wanted = countOf(DISCOVER) + times * DISPATCHERS;
  await waitFor(() => countOf(DISCOVER) >= wanted, { what: `${times} more looks of each dispatcher` });
}

describe.concurrent('a circuit', { timeout: 120_000 }, () => {
  it('[row 42] opens after five failures in a row: no request, no attempt counted, no row lost, shown as held', async ({
    onTestFinished,
  }) => {
    const scene = await openScene(stage, onTestFinished, {
      circuit_failures: 5,
      circuit_open_ms: 60_000,
      concurrency: 1,
      retry: TENTHS,
    });
    scene.receiver.answer(500);
    const published = await scene.publish(30);
    const { openUntilMs, failures } = await scene.untilCircuit('open');
    expect(failures).toBeGreaterThanOrEqual(5);
    const open = await waitFor(
      async () => {
        const rows = await scene.deliveries();
        return rows.every(({ leased }) => !leased) && rows;
      },
      { what: 'the end of what was on its way' },
    );
    const counted = open.reduce((sum, { attempts }) => sum + attempts, 0);
    expect(counted).toBe(scene.receiver.requests.length);
    // Five, and what each of the three had under way by then.
    expect(counted).toBeLessThanOrEqual(5 + 2 * DISPATCHERS);
    const shown = await Promise.all(
      published.map(({ deliveryId }) => readDelivery(stage.pool, stage.tenantId, deliveryId)),
    );
    expect(new Set(shown.map((delivery) => delivery!.state))).toEqual(new Set(['held']));
    await untilLooked(10);
    expect(await scene.deliveries()).toEqual(open);
    expect(open.map(({ owed }) => owed)).toEqual(published.map(() => true));

    expect(scene.receiver.requests.length).toBe(counted);
    expect(openUntilMs! - Date.now()).toBeGreaterThan(0);

    scene.receiver.answer(200);
    await stage.pool.query(
      `update waybill.circuits set open_until = now() + interval '500 milliseconds' where endpoint_id = $1`,
      [scene.endpointId],
    );
    const { openUntilMs: shifted } = (await scene.circuit())!;
    await scene.untilAll(['succeeded']);
    expect(scene.receiver.requests[counted]!.at).toBeGreaterThanOrEqual(shifted! - 20);
  });

  it('[row 43] lets exactly one probe through, closes with its success, and drains at a doubling pace', async ({
    onTestFinished,
  }) => {
    const scene = await openScene(stage, onTestFinished, {
      circuit_failures: 5,
      circuit_open_ms: 500,
      retry: TENTHS,
    });
    scene.receiver.answer(500);
    await scene.publish(150);
    await scene.untilCircuit('open');
    await waitFor(async () => (await scene.deliveries()).every(({ leased }) => !leased), {
      what: 'the end of what was on its way',
    });
    const before = scene.receiver.requests.length;
    scene.receiver.hold();
    await waitFor(() => scene.receiver.held > 0, { what: 'the probe' });
    const claims = await Promise.all(
      Array.from({ length: 8 }, () =>
        claimDeliveries(
          stage.pool,
          [{ tenantId: scene.tenantId, endpointId: scene.endpointId, quota: 10, watermarkMs: 0 }],
          { claimToken: randomUUID(), leaseMs: 12_000 },
        ),
      ),
    );
    expect(claims.flatMap(({ deliveries }) => deliveries)).toEqual([]);
    await untilLooked(20);
    expect(scene.receiver.requests.length).toBe(before + 1);
    expect((await scene.deliveries()).filter(({ leased }) => leased).length).toBe(1);

    scene.receiver.answer({ status: 200, delayMs: 20 });
    scene.receiver.release(200);
    const { failures, closedAtMs } = await scene.untilCircuit('closed');
    expect(failures).toBe(0);
    await scene.untilAll(['succeeded']);
    const drained = scene.receiver.requests.slice(before + 1);
    const firstSecond = drained.filter(({ at }) => at < closedAtMs! + 900);
    expect(firstSecond.length).toBeGreaterThan(3);
    expect(Math.max(...firstSecond.map(({ openAtOnce }) => openAtOnce))).toBeLessThanOrEqual(DISPATCHERS);
    expect(drained.length).toBe(new Set(drained.map(({ deliveryId }) => deliveryId)).size);
  });

  it('[row 45] does not delay another endpoint of the tenant', async ({ onTestFinished }) => {
    const policy = { circuit_failures: 5, circuit_open_ms: HOUR_MS, retry: TENTHS };
    const dead = await openScene(stage, onTestFinished, policy);
    const live = await openScene(stage, onTestFinished, policy);
    dead.receiver.answer(500);
    await dead.publish(200);
    await dead.untilCircuit('open');
    const publishedAt = performance.now();
    await live.publish(50);
    await live.receiver.waitFor(50);
    expect(performance.now() - publishedAt).toBeLessThan(2_000);
    expect(await dead.circuit()).toMatchObject({ state: 'open' });
  });

  it('[row 44] [row 46] writes no row behind it but its probes’, one a window and never the same twice running', async ({
    onTestFinished,
  }) => {
    const openMs = 600;
    const receiver = await startReceiver({ answer: 500 });
    onTestFinished(() => receiver.close());
    await seedBacklog(stage.pool, {
      tenants: 1,
      endpointsPerTenant: 1,
      dueRows: SIZES.rowsBehindOpenCircuit,
      finishedRows: 0,
      url: receiver.url,
    });
    const { rows } = await stage.pool.query<{ id: string }>(
      'select id from waybill.endpoints where tenant_id <> $1 and url = $2',
      [stage.tenantId, `${receiver.url}/1`],
    );
    const endpointId = rows[0]!.id;
    await setPolicy(stage, endpointId, { circuit_failures: 5, circuit_open_ms: openMs, retry: TENTHS });
    const { untilCircuit } = readersOf(stage, endpointId, 'none');
    await untilCircuit('open');
    const leased = async () =>
      (
        await stage.pool.query(
          'select from waybill.delivery_queue where endpoint_id = $1 and lease_until is not null',
          [endpointId],
        )
      ).rowCount;
    // What was claimed while it was closed has to end first; a probe is quick, and over in a moment.
    await waitFor(async () => (await leased()) === 0, { what: 'the end of what was on its way' });
    const before = receiver.requests.length;
    const versions = await rowVersions(stage, endpointId);
    // The first of them may have been under way.
    await receiver.waitFor(before + 5);
    const after = await rowVersions(stage, endpointId);
    const probes = receiver.requests.slice(before);
    const probed = new Set(probes.map(({ deliveryId }) => deliveryId));
    const written = [...after].filter(([key, version]) => versions.get(key) !== version);
    expect(after.size).toBe(versions.size);
    expect(written.length).toBeGreaterThan(0);
    expect(written.filter(([key]) => !probed.has(key.split(' ')[1]!))).toEqual([]);
    const pairs = probes.slice(1).map((probe, index) => [probes[index]!, probe] as const);
    for (const [one, next] of pairs) {
      expect(next.at - one.at).toBeGreaterThanOrEqual(openMs - 20);
      expect(next.deliveryId).not.toBe(one.deliveryId);
      expect(next.openAtOnce).toBe(1);
    }
    await setPolicy(stage, endpointId, { status: 'paused' });
  });

  it('opens when the ratio of failures is reached, with twenty attempts at least', async ({
    onTestFinished,
  }) => {
    const scene = await openScene(stage, onTestFinished, {
      circuit_failures: 1_000,
      circuit_failure_ratio: 0.5,
      circuit_open_ms: HOUR_MS,
      concurrency: DISPATCHERS,
      retry: { schedule_seconds: [3_600], jitter: 0 },
    });
    let asked = 0;
    scene.receiver.answer(() => ((asked += 1) % 3 === 0 ? 200 : 500));
    await scene.publish(200);
    const { failures } = await scene.untilCircuit('open');
    expect(failures).toBeLessThan(10);
    expect(scene.receiver.requests.length).toBeGreaterThanOrEqual(20);
    expect(scene.receiver.requests.length).toBeLessThan(150);
  });

  it('never opens where it is off, whatever fails', async ({ onTestFinished }) => {
    const scene = await openScene(stage, onTestFinished, {
      circuit_failures: 0,
      circuit_failure_ratio: 0.01,
      retry: { schedule_seconds: [0.1, 0.1, 0.1], jitter: 0 },
    });
    scene.receiver.answer(500);
    await scene.publish(30);
    await scene.untilAll(['dead']);
    expect(scene.receiver.requests.length).toBe(120);
    expect(await scene.circuit()).toMatchObject({ state: 'closed', openUntilMs: null });
  });

  it('stays open when an attempt from before succeeds late', async ({ onTestFinished }) => {
    const scene = await openScene(stage, onTestFinished, {
      circuit_failures: 5,
      circuit_open_ms: HOUR_MS,
      retry: TENTHS,
    });
    let answerLate: (status: number) => void = () => undefined;
    const late = new Promise<number>((resolve) => (answerLate = resolve));
    let asked = 0;
    scene.receiver.answer(() => ((asked += 1) === 1 ? late : 500));
    const published = await scene.publish(40);
    const opened = await scene.untilCircuit('open');
    answerLate(200);
    await waitFor(
      async () => (await scene.deliveries()).filter(({ state }) => state === 'succeeded').length === 1,
      { what: 'the late success' },
    );
    await untilLooked(5);
    expect(await scene.circuit()).toMatchObject({ state: 'open', openUntilMs: opened.openUntilMs });
    expect((await scene.deliveries()).filter(({ owed }) => owed).length).toBe(published.length - 1);
  });
});

/** The version of every row in queue and deliveries, by table and the delivery's id on the wire. */
async function rowVersions(on: Stage, endpointId: string): Promise<Map<string, string>> {
  const { rows } = await on.pool.query<{ key: string; version: string }>(
    `select 'queue dlv_' || replace(delivery_id::text, '-', '') as key, xmin::text as version
     from waybill.delivery_queue where endpoint_id = $1
     union all
     select 'deliveries dlv_' || replace(id::text, '-', ''), xmin::text
     from waybill.deliveries where endpoint_id = $1`,
    [endpointId],
  );
  return new Map(rows.map(({ key, version }) => [key, version]));
}

it('asks a held endpoint’s claim no more often than it must', async () => {
  // The endpoints above are open for an hour by now, with rows behind them that are due all the time.
  const [claims, looks] = [countOf(CLAIM), countOf(DISCOVER)];
  await untilLooked(40);
  expect(countOf(CLAIM) - claims).toBeLessThan((countOf(DISCOVER) - looks) / 2);
});
