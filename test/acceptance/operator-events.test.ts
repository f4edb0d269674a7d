import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { formatId } from '#runtime';
import { readDelivery } from '#outbox';

import type { ReceivedRequest } from '../support/receiver.js';
import { listenFor, openScene, setPolicy, type Scene } from '../support/scene.js';
import { openStage, QUICK, type Stage } from '../support/stage.js';
import { verifySignature } from '../support/verify-signature.js';
import { waitFor } from '../support/wait-for.js';

const ENV = { ...QUICK, WAYBILL_DISABLE_AFTER_HOURS: '1' };
const EVENTS = ['waybill.endpoint.disabled', 'waybill.endpoint.recovered', 'waybill.delivery.dead'];
const OFTEN = { schedule_seconds: Array.from({ length: 40 }, () => 0.1), jitter: 0 };
const ONCE_MORE = { schedule_seconds: [0.1], jitter: 0 };

interface Told {
  readonly type: string;
  readonly endpoint_id: string;
  readonly event_id?: string;
  readonly delivery_id?: string;
  readonly reason?: string;
}

let stage: Stage;
/** Subscribed to each operator event by its name; to everything by a star; by name again, and never willing to take one. */
let operator: Scene;
let star: Scene;
let unwilling: Scene;
const cleanUps: (() => Promise<void>)[] = [];
const later = (cleanUp: () => Promise<void>): void => void cleanUps.push(cleanUp);

beforeAll(async () => {
  stage = await openStage(later);
  await listenFor(stage, stage.endpointId, 'unused');
  operator = await openScene(stage, later);
  star = await openScene(stage, later);
  unwilling = await openScene(stage, later, { retry: ONCE_MORE, circuit_failures: 0 });
  unwilling.receiver.answer(500);
  await listenFor(stage, star.endpointId, '*');
  for (const { endpointId } of [operator, unwilling]) await subscribeByName(stage, endpointId);
  await Promise.all([stage.boot(ENV), stage.boot(ENV)]);
});
afterAll(async () => {
  for (const cleanUp of cleanUps) await cleanUp();
});

async function subscribeByName({ pool, tenantId }: Stage, endpointId: string): Promise<void> {
  await pool.query(
    `insert into waybill.subscriptions (tenant_id, endpoint_id, event_type) select $1, $2, unnest($3::text[])`,
    [tenantId, endpointId, EVENTS],
  );
}

function toldBy(request: ReceivedRequest): Told {
  return JSON.parse(request.body.toString('utf8')) as Told;
}

/** The operator events about an endpoint that arrived, without those of other tests. */
function heardOf(scene: Scene, at = operator): ReceivedRequest[] {
  const endpointId = formatId('endpoint', scene.endpointId);
  return at.receiver.requests.filter((request) => toldBy(request).endpoint_id === endpointId);
}

async function untilHeard(scene: Scene, type: string): Promise<ReceivedRequest> {
  return waitFor(() => heardOf(scene).find((request) => toldBy(request).type === type), { what: type });
}

async function readEndpoint({ endpointId }: Scene) {
  const { rows } = await stage.pool.query<{
    status: string;
    disabled_reason: string | null;
    version: number;
  }>('select status, disabled_reason, version from waybill.endpoints where id = $1', [endpointId]);
  return rows[0]!;
}

describe.concurrent('an endpoint', { timeout: 120_000 }, () => {
  it('that answers 410 is disabled: that delivery is dead, the others are held, and no event makes a new one', async ({
    onTestFinished,
  }) => {
    const scene = await openScene(stage, onTestFinished, { concurrency: 1, retry: OFTEN });
    const { version } = await readEndpoint(scene);
    let asked = 0;
    scene.receiver.answer(() => ((asked += 1) === 1 ? 410 : 500));
    const published = await scene.publish(20);
    const heard = await untilHeard(scene, 'waybill.endpoint.disabled');
    expect(toldBy(heard)).toMatchObject({ reason: 'gone' });
    expect(await readEndpoint(scene)).toEqual({
      status: 'disabled',
      disabled_reason: 'gone',
      version: version + 1,
    });
    const rows = await waitFor(
      async () => {
        const found = await scene.deliveries();
        return found.every(({ leased }) => !leased) && found;
      },
      { what: 'the end of what was on its way' },
    );
    expect(rows.filter(({ state }) => state === 'dead').map(({ reason }) => reason)).toEqual(['gone']);
    expect(rows.filter(({ owed }) => owed).length).toBe(19);
    // What either dispatcher had begun before the 410 was recorded.
    expect(scene.receiver.requests.length).toBeLessThan(10);
    const held = rows.find(({ owed }) => owed)!;
    expect(await readDelivery(stage.pool, stage.tenantId, held.id)).toMatchObject({ state: 'held' });
    expect((await scene.publish(3)).filter(({ endpointId }) => endpointId === scene.endpointId)).toEqual([]);
    expect((await scene.deliveries()).length).toBe(
      published.filter((one) => one.endpointId === scene.endpointId).length,
    );
    expect(
      heardOf(scene)
        .map((request) => toldBy(request).type)
        .toSorted(),
    ).toEqual(['waybill.delivery.dead', 'waybill.endpoint.disabled']);
  });

  it('that did nothing but fail for longer than the limit is disabled; one success keeps another', async ({
    onTestFinished,
  }) => {
    const policy = { concurrency: 1, retry: OFTEN, circuit_failures: 0 };
    const failing = await openScene(stage, onTestFinished, policy);
    const wavering = await openScene(stage, onTestFinished, policy);
    let asked = 0;
    failing.receiver.answer(500);
    wavering.receiver.answer(() => ((asked += 1) === 4 ? 200 : 500));
    const version = (await readEndpoint(failing)).version;
    await Promise.all([failing.publish(1), wavering.publish(2)]);
    await Promise.all([failing.receiver.waitFor(2), wavering.receiver.waitFor(6)]);
    await waitFor(async () => (await wavering.deliveries()).some(({ state }) => state === 'succeeded'), {
      what: 'one success',
    });
    const shift = (scene: Scene, hours: number) =>
      stage.pool.query(
        `update waybill.circuits set failing_since = failing_since - $2 * interval '1 hour' where endpoint_id = $1`,
        [scene.endpointId, hours],
      );
    // Fifty-nine minutes would not do, and nor do two hours of which a success took the first.
    await shift(wavering, 0.98);
    await shift(failing, 2);
    const heard = await untilHeard(failing, 'waybill.endpoint.disabled');
    expect(toldBy(heard)).toMatchObject({ reason: 'failing' });
    expect(await readEndpoint(failing)).toEqual({
      status: 'disabled',
      disabled_reason: 'failing',
      version: version + 1,
    });
    expect((await failing.deliveries()).map(({ owed }) => owed)).toEqual([true]);
    expect(await readEndpoint(wavering)).toMatchObject({ status: 'enabled', disabled_reason: null });
    await setPolicy(stage, wavering.endpointId, { status: 'paused' });
  });

  it('that recovers, and a delivery that dies, are told once, signed, to whoever asked for it by name', async ({
    onTestFinished,
  }) => {
    const scene = await openScene(stage, onTestFinished, {
      retry: ONCE_MORE,
      circuit_failures: 2,
      circuit_open_ms: 200,
    });
    scene.receiver.answer(500);
    const [published] = await scene.publish(1);
    await untilHeard(scene, 'waybill.delivery.dead');
    scene.receiver.answer(200);
    await scene.publish(3);
    await untilHeard(scene, 'waybill.endpoint.recovered');
    await scene.untilAll(['dead', 'succeeded']);
    const heard = heardOf(scene);
    const told = heard.map(toldBy).toSorted((a, b) => a.type.localeCompare(b.type));
    const mine = (await scene.deliveries()).find(({ state }) => state === 'dead')!;
    expect(told).toEqual([
      {
        type: 'waybill.delivery.dead',
        occurred_at: expect.any(String) as string,
        endpoint_id: formatId('endpoint', scene.endpointId),
        event_id: formatId('event', published!.eventId),
        delivery_id: formatId('delivery', mine.id),
        reason: 'exhausted',
      },
      {
        type: 'waybill.endpoint.recovered',
        occurred_at: expect.any(String) as string,
        endpoint_id: formatId('endpoint', scene.endpointId),
      },
    ]);
    for (const request of heard) verifySignature(request, operator.secret);
  });
});

describe('operator events', { timeout: 120_000 }, () => {
  it('never go by a star, and their own deaths are told to nobody', async () => {
    // All that the tests above announced is through at the willing one, and dead at the other.
    await waitFor(
      async () => {
        const { rows } = await stage.pool.query<{ left: number }>(
          `select (select count(*) from waybill.announcements)::integer
             + (select count(*) from waybill.delivery_queue where endpoint_id = any($1))::integer as left`,
          [[operator.endpointId, unwilling.endpointId]],
        );
        return rows[0]!.left === 0;
      },
      { what: 'the end of all announcements' },
    );
    const types = star.receiver.requests.map((request) => request.header('waybill-event-type')!);
    expect(types.length).toBeGreaterThan(20);
    expect(types.filter((type) => type.startsWith('waybill.'))).toEqual([]);
    const ended = await unwilling.deliveries();
    expect(ended.length).toBeGreaterThan(3);
    expect(new Set(ended.map(({ state }) => state))).toEqual(new Set(['dead']));
    expect(heardOf(unwilling)).toEqual([]);
    const told = operator.receiver.requests.map(toldBy);
    expect(
      new Set(told.map(({ type, endpoint_id, delivery_id }) => `${type} ${endpoint_id} ${delivery_id}`)).size,
    ).toBe(told.length);
  });

  it('are not lost with a dispatcher that is killed while it makes them', async ({ onTestFinished }) => {
    const own = await openStage(onTestFinished);
    await listenFor(own, own.endpointId, 'unused');
    const scene = await openScene(own, onTestFinished, { retry: ONCE_MORE });
    const listener = await openScene(own, onTestFinished);
    await subscribeByName(own, listener.endpointId);
    const taken = own.proxy.on('delete from waybill.announcements', { moment: 'after', action: 'swallow' });
    const first = await own.boot(ENV);
    scene.receiver.answer(500);
    await scene.publish(1);
    await taken.hit;
    await first.kill();
    taken.release();
    await own.untilSessionsEnded();
    expect(listener.receiver.requests).toEqual([]);
    const { rowCount } = await own.pool.query('select from waybill.announcements');
    expect(rowCount).toBe(1);
    await own.boot(ENV);
    await listener.receiver.waitFor(1);
    await listener.untilAll(['succeeded']);
    expect(listener.receiver.requests.map(toldBy).map(({ type }) => type)).toEqual(['waybill.delivery.dead']);
    expect((await own.pool.query('select from waybill.announcements')).rowCount).toBe(0);
  });
});
