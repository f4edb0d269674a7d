<<<<<<< HEAD
import { Webhook } from 'standardwebhooks';
import { afterAll, beforeAll, expect, it } from 'vitest';

import { expectDrained } from '../support/expect-drained.js';
import { BRISK_ATTEMPTS, expectStatus, openPlatform, type Platform } from '../support/platform.js';

let platform: Platform;
beforeAll(async () => {
  platform = await openPlatform();
  await Promise.all([platform.bootApi(), platform.bootDispatcher()]);
});
afterAll(() => platform.close());

it('[H21] an event keeps its ids over failures and a replay, and two endpoints of it can be told apart', async () => {
  const [failing, other] = await Promise.all([platform.startReceiver(), platform.startReceiver()]);
  const answers = [500, 502, 429];
  failing.answer(() => answers.shift() ?? 200);
  const endpoint = await platform.addEndpoint(failing.url);
  const second = await platform.addEndpoint(other.url);
  const event = await platform.publish({ order: 1 });
  const deliveryTo = (id: string) => event.deliveries.find(({ endpoint_id: to }) => to === id)!.id;
  const delivery = deliveryTo(endpoint.id);

  await platform.untilState(delivery, 'succeeded');
  expectStatus(await platform.client.post(`/v1/deliveries/${delivery}/replay`), 202);
  await failing.waitFor(5);
  await platform.untilState(delivery, 'succeeded');
  await other.waitFor(1);

  const requests = failing.requests;
  const column = (name: string) => requests.map((request) => request.header(name));
  expect(column('webhook-id')).toEqual(Array.from({ length: 5 }, () => delivery));
  expect(column('idempotency-key')).toEqual(column('webhook-id'));
  expect(column('waybill-event-id')).toEqual(Array.from({ length: 5 }, () => event.id));
  expect(column('waybill-attempt')).toEqual(['1', '2', '3', '4', '5']);
  for (const request of requests) {
    // Whole seconds, cut off: up to 1 s below the arrival; the rest is for a machine that is busy.
    const ageMs = request.at - Number(request.header('webhook-timestamp')) * 1000;
    expect(ageMs).toBeGreaterThan(-1_000);
    expect(ageMs).toBeLessThan(3_000);
    expect(request.body.toString('utf8')).toBe('{"order":1}');
    new Webhook(endpoint.secret).verify(request.body, Object.fromEntries(request.headers));
  }

  const [twin] = other.requests;
  expect(other.requests).toHaveLength(1);
  expect(twin!.header('waybill-event-id')).toBe(event.id);
  expect(twin!.header('webhook-id')).toBe(deliveryTo(second.id));
  expect(twin!.header('webhook-id')).not.toBe(delivery);
  new Webhook(second.secret).verify(twin!.body, Object.fromEntries(twin!.headers));

  const shown = await platform.readDelivery(delivery);
  expect(shown.attempts.map(({ number, status_code: status }) => [number, status])).toEqual([
    [1, 500],
    [2, 502],
    [3, 429],
    [4, 200],
    [5, 200],
  ]);
  await expectDrained(platform, { attemptLimit: BRISK_ATTEMPTS });
});
=======
import { replayDelivery } from '#outbox';
import { Webhook } from 'standardwebhooks';
import { expect, it } from 'vitest';

import { expectSettled } from '../support/expect-settled.js';
import { openStage, QUICK } from '../support/stage.js';
import type { ReceivedRequest } from '../support/receiver.js';

it('[H21] [row 59] ids stay the same over retries and replay, while number, time and signature are each attempt’s', async ({
  onTestFinished,
}) => {
  const stage = await openStage(onTestFinished);
  const { receiver, pool } = stage;
  const other = await stage.addEndpoint(`${receiver.url}/other`);
  let failures = 3;
  receiver.answer(({ path }) => (path === '/' && failures-- > 0 ? 500 : 200));
  // Waits of over a second: the timestamps of two attempts must differ.
  await stage.boot({ ...QUICK, WAYBILL_RETRY_SCHEDULE: '1.1,1.1,1.1,1.1' });
  const published = await stage.publish(['{"b":136.0,"a":12345678901234567890}']);
  const main = published.find(({ endpointId }) => endpointId === stage.endpointId)!;
  const second = published.find(({ endpointId }) => endpointId === other.endpointId)!;
  await expectSettled(stage, { attemptLimit: 5 });
  expect(receiver.requestsFor(main.wireId).length).toBe(4);

  const replay = { apiKeyId: null, maxAgeMs: 3_600_000 };
  expect(await replayDelivery(pool, stage.tenantId, main.deliveryId, replay)).toMatchObject({
    kind: 'replayed',
  });
  await receiver.waitFor(6);
  await expectSettled(stage, { attemptLimit: 6 });

  const requests = receiver.requestsFor(main.wireId);
  const valuesOf = (name: string) => requests.map(({ header }) => header(name));
  const all = (value: string) => Array.from({ length: 5 }, () => value);
  expect(valuesOf('waybill-attempt')).toEqual(['1', '2', '3', '4', '5']);
  expect(valuesOf('webhook-id')).toEqual(all(main.wireId));
  expect(valuesOf('idempotency-key')).toEqual(all(main.wireId));
  expect(valuesOf('waybill-event-id')).toEqual(all(`evt_${main.eventId.replaceAll('-', '')}`));
  const times = valuesOf('webhook-timestamp').map(Number);
  for (const [index, time] of times.entries()) {
    if (index > 0) expect(time).toBeGreaterThan(times[index - 1]!);
    // Whole seconds, rounded down, of this attempt: within one second of the receiver's clock, and one for the way.
    expect(requests[index]!.at / 1000 - time).toBeGreaterThan(-1);
    expect(requests[index]!.at / 1000 - time).toBeLessThan(2);
  }
  for (const request of requests) verifyOrThrow(request, stage.secret);
  expect(new Set(valuesOf('webhook-signature')).size).toBe(5);
  expect(() => verifyOrThrow(requests[0]!, other.secret)).toThrow('No matching signature');

  const [twin] = receiver.requestsFor(second.wireId);
  expect(second.wireId).not.toBe(main.wireId);
  expect(twin!.header('waybill-event-id')).toBe(requests[0]!.header('waybill-event-id'));
  verifyOrThrow(twin!, other.secret);
});

/** The check of the specification's own library, over the bytes as they came. */
function verifyOrThrow({ body, header }: ReceivedRequest, secret: string): void {
  const names = ['webhook-id', 'webhook-timestamp', 'webhook-signature'];
  new Webhook(secret).verify(body, Object.fromEntries(names.map((name) => [name, header(name) ?? ''])));
}
>>>>>>> main
