import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import type { ApiResponse } from '../support/api-client.js';
import type { RunningApp } from '../support/apps.js';
import { expectDrained } from '../support/expect-drained.js';
import { BRISK, BRISK_ATTEMPTS, expectStatus, openPlatform, type Platform } from '../support/platform.js';
import type { Receiver } from '../support/receiver.js';
import { waitFor } from '../support/wait-for.js';

interface ShownDeadLetter {
  readonly delivery_id: string;
  readonly endpoint_id: string;
  readonly reason: string;
  readonly attempt_count: number;
  readonly resolved_at: string | null;
}

// The first retry waits long enough for a test to stop the dispatcher before it.
const SETTINGS = { ...BRISK, WAYBILL_RETRY_SCHEDULE: '1,0.1,0.1,0.1' };

let platform: Platform;
let api: RunningApp;
let dispatcher: RunningApp;
beforeAll(async () => {
  platform = await openPlatform();
  [api, dispatcher] = await Promise.all([platform.bootApi(), platform.bootDispatcher(SETTINGS)]);
});
afterAll(() => platform.close());

async function deadLetters(query: string): Promise<ShownDeadLetter[]> {
  const answer = await platform.client.get<{ data: ShownDeadLetter[] }>(`/v1/dead-letters?${query}`);
  return expectStatus(answer, 200).data;
}

/** Publishes to a receiver that refuses everything and waits until the delivery is dead. */
async function exhaust(type: string): Promise<{ receiver: Receiver; delivery: string; endpoint: string }> {
  const receiver = await platform.startReceiver();
  receiver.answer({ status: 503, body: 'no room' });
  const endpoint = await platform.addEndpoint(receiver.url, { event_types: [type] });
  const event = await platform.publish({ order: 1 }, type);
  const delivery = event.deliveries[0]!.id;
  await platform.untilState(delivery, 'dead');
  return { receiver, delivery, endpoint: endpoint.id };
}

/** The queue's rows of one delivery, by its id in the API. */
async function queued(delivery: string): Promise<{ due: boolean; cycle: number; count: number }[]> {
  const { rows } = await platform.pool.query<{ due: boolean; cycle: number; count: number }>(
    `select due_at <= now() as due, cycle_attempt_count as cycle, attempt_count as count
     from waybill.delivery_queue where delivery_id = $1::uuid`,
    [delivery.slice('dlv_'.length)],
  );
  return rows;
}

function expectRefused(answer: ApiResponse<Record<string, unknown>>, state: string): void {
  expect([answer.status, answer.body['code']]).toEqual([409, 'delivery_not_replayable']);
  expect(answer.body['details']).toEqual([{ field: 'state', reason: state }]);
  const wayOut = state === 'in_progress' ? '' : ' To send it now, cancel it first, then replay it.';
  expect(answer.body['detail']).toBe(
    `The delivery is ${state}; only a finished one can be replayed.${wayOut}`,
  );
}

describe('a delivery that spent its attempts', () => {
  it('[row 36] [row 50] [row 54] [row 55] is listed dead with its whole history, and a replay numbers on', async () => {
    const { receiver, delivery, endpoint } = await exhaust('order.spent');
    expect(receiver.requestsFor(delivery)).toHaveLength(BRISK_ATTEMPTS);
    const dead = await platform.readDelivery(delivery);
    expect(dead).toMatchObject({ attempt_count: 5, next_attempt_at: null, last_status_code: 503 });
    expect(dead.attempts).toHaveLength(5);
    for (const [index, attempt] of dead.attempts.entries()) {
      const request = receiver.requestsFor(delivery)[index]!;
      expect(attempt).toMatchObject({
        number: index + 1,
        outcome: 'failed',
        status_code: 503,
        error_kind: 'http_status',
        response_body: 'no room',
      });
      expect(attempt.error!.length).toBeLessThanOrEqual(500);
      expect(attempt.duration_ms).toBeGreaterThan(0);
      expect(Math.abs(Date.parse(attempt.started_at) - request.at)).toBeLessThan(5_000);
      expect(request.header('waybill-attempt')).toBe(String(index + 1));
    }
    const letter = { delivery_id: delivery, endpoint_id: endpoint, reason: 'exhausted', attempt_count: 5 };
    const ofEndpoint = `endpoint_id=${endpoint}`;
    expect(await deadLetters(ofEndpoint)).toMatchObject([{ ...letter, resolved_at: null }]);
    expect(await deadLetters(`${ofEndpoint}&resolved=true`)).toEqual([]);
    // One transaction made it dead: the death, the letter and the last attempt carry its time.
    const { rows } = await platform.pool.query<{ same: boolean }>(
      `select d.finished_at = l.died_at and l.died_at = a.recorded_at as same
       from waybill.deliveries d
       join waybill.dead_letters l using (tenant_id, event_id, endpoint_id)
       join waybill.attempts a using (tenant_id, event_id, endpoint_id)
       where d.id = $1::uuid and a.number = 5`,
      [delivery.slice('dlv_'.length)],
    );
    expect(rows).toEqual([{ same: true }]);

    expectStatus(await platform.client.post(`/v1/deliveries/${delivery}/replay`), 202);
    const again = await waitFor(
      async () => {
        const shown = await platform.readDelivery(delivery);
        return shown.state === 'dead' && shown.attempt_count === 10 && shown;
      },
      { what: 'the second death' },
    );
    expect(again.attempts.map(({ number }) => number)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    expect(again.attempts.slice(0, 5)).toEqual(dead.attempts);
    const secondLetter = { ...letter, attempt_count: 10, resolved_at: null };
    expect(await deadLetters(ofEndpoint)).toMatchObject([secondLetter]);
    const sent = receiver.requestsFor(delivery).map((request) => request.header('waybill-attempt'));
    expect(sent).toEqual(['1', '2', '3', '4', '5', '6', '7', '8', '9', '10']);
  });

  it('[row 53] [row 55] is replayed once by six at once, and the five others are told its state', async () => {
    const { receiver, delivery, endpoint } = await exhaust('order.raced');
    const before = await platform.readDelivery(delivery);
    dispatcher.pause();
    const answers = await Promise.all(
      Array.from({ length: 6 }, () => platform.client.post(`/v1/deliveries/${delivery}/replay`)),
    );
    expect(answers.map(({ status }) => status).toSorted((one, other) => one - other)).toEqual([
      202, 409, 409, 409, 409, 409,
    ]);
    for (const answer of answers) if (answer.status !== 202) expectRefused(answer, 'pending');
    expect(await queued(delivery)).toEqual([{ due: true, cycle: 0, count: 5 }]);
    const { rows } = await platform.pool.query(
      `select (select count(*)::int from waybill.replays where delivery_id = $1::uuid) as replays,
        (select count(*)::int from waybill.deliveries where id = $1::uuid) as deliveries`,
      [delivery.slice('dlv_'.length)],
    );
    expect(rows).toEqual([{ replays: 1, deliveries: 1 }]);
    expect((await platform.readDelivery(delivery)).attempts).toEqual(before.attempts);
    expect(await deadLetters(`endpoint_id=${endpoint}&resolved=false`)).toEqual([]);
    const resolved = await deadLetters(`endpoint_id=${endpoint}&resolved=true`);
    expect(resolved).toMatchObject([{ delivery_id: delivery, attempt_count: 5 }]);
    receiver.answer(200);
    dispatcher.resume();
    await platform.untilState(delivery, 'succeeded');
    expect(receiver.requestsFor(delivery)).toHaveLength(BRISK_ATTEMPTS + 1);
  });
});

describe('a delivery that is not finished', () => {
  it('[row 52] is not replayable while pending, in progress or failed, and is once it succeeded', async () => {
    const receiver = await platform.startReceiver();
    await platform.addEndpoint(receiver.url, { event_types: ['order.open'] });
    dispatcher.pause();
    const event = await platform.publish({ order: 1 }, 'order.open');
    const delivery = event.deliveries[0]!.id;
    const replay = () => platform.client.post(`/v1/deliveries/${delivery}/replay`);
    expectRefused(await replay(), 'pending');
    receiver.hold();
    dispatcher.resume();
    await receiver.waitFor(1);
    dispatcher.pause();
    expectRefused(await replay(), 'in_progress');
    receiver.release(500);
    dispatcher.resume();
    await platform.untilState(delivery, 'failed');
    dispatcher.pause();
    expectRefused(await replay(), 'failed');
    dispatcher.resume();
    await platform.untilState(delivery, 'succeeded');
    expectStatus(await replay(), 202);
    await receiver.waitFor(3);
    await platform.untilState(delivery, 'succeeded');
    expect(receiver.requests.map((request) => request.header('waybill-attempt'))).toEqual(['1', '2', '3']);
  });
});

describe('a disabled endpoint', () => {
  it('[row 47] [row 48] gets nothing, loses nothing that was queued, and is owed no new event', async () => {
    const [receiver, bystander] = await Promise.all([platform.startReceiver(), platform.startReceiver()]);
    const endpoint = await platform.addEndpoint(receiver.url, { event_types: ['order.halted'] });
    await platform.addEndpoint(bystander.url, { event_types: ['order.halted'] });
    dispatcher.pause();
    const events = await Promise.all([1, 2, 3].map((order) => platform.publish({ order }, 'order.halted')));
    expectStatus(await platform.client.patch(`/v1/endpoints/${endpoint.id}`, { status: 'disabled' }), 200);
    const missed = await platform.publish({ order: 4 }, 'order.halted');
    expect(missed.deliveries.map(({ endpoint_id: to }) => to)).not.toContain(endpoint.id);
    dispatcher.resume();
    // These fell due after the ones that are held: had those been sent, they would be here before.
    await bystander.waitFor(4);
    await platform.untilState(missed.deliveries[0]!.id, 'succeeded');
    expect(receiver.requests).toHaveLength(0);
    const held = events.map(
      ({ deliveries }) => deliveries.find(({ endpoint_id: to }) => to === endpoint.id)!.id,
    );
    for (const id of held) {
      expect(await platform.readDelivery(id)).toMatchObject({ state: 'held', attempt_count: 0 });
    }
    expectStatus(await platform.client.patch(`/v1/endpoints/${endpoint.id}`, { status: 'enabled' }), 200);
    await receiver.waitFor(3, 5_000);
    for (const id of held) await platform.untilState(id, 'succeeded');
    expect(receiver.uniqueDeliveries().toSorted()).toEqual(held.toSorted());
    expect(receiver.requests).toHaveLength(3);
  });
});

describe('an api without a dispatcher', () => {
  it('[row 51] makes a replayed delivery due at once and sends nothing itself', async () => {
    const { receiver, delivery } = await exhaust('order.last');
    expect(await dispatcher.stop()).toEqual({ code: 0, signal: null });
    receiver.answer(200);
    const replay = expectStatus(await platform.client.post(`/v1/deliveries/${delivery}/replay`), 202);
    expect(replay).toMatchObject({ delivery_id: delivery, state: 'pending' });
    expect(await queued(delivery)).toEqual([{ due: true, cycle: 0, count: 5 }]);
    expect(await platform.readDelivery(delivery)).toMatchObject({ state: 'pending', attempt_count: 5 });
    // What the api has under way ends with it: had it sent anything, the receiver would have it by now.
    expect(await api.stop()).toEqual({ code: 0, signal: null });
    expect(receiver.requests).toHaveLength(BRISK_ATTEMPTS);
    await platform.bootDispatcher(SETTINGS);
    await receiver.waitFor(BRISK_ATTEMPTS + 1);
    expect(receiver.requests.at(-1)!.header('waybill-attempt')).toBe('6');
    await expectDrained(platform, { attemptLimit: BRISK_ATTEMPTS });
  });
});
