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

  // A replay to a second endpoint, one that came after the event: a delivery of its own, numbered from 1.
  const late = await platform.startReceiver();
  const third = await platform.addEndpoint(late.url);
  const path = `/v1/events/${event.id}/deliveries`;
  const added = await platform.client.post<{ id: string }>(path, { endpoint_id: third.id });
  const extra = expectStatus(added, 201).id;
  await platform.untilState(extra, 'succeeded');
  expect(late.requests).toHaveLength(1);
  const names = ['waybill-event-id', 'webhook-id', 'idempotency-key', 'waybill-attempt'];
  expect(names.map((name) => late.requests[0]!.header(name))).toEqual([event.id, extra, extra, '1']);
  expect(new Set([delivery, deliveryTo(second.id), extra]).size).toBe(3);
  expect(late.requests[0]!.body.toString('utf8')).toBe('{"order":1}');
  new Webhook(third.secret).verify(late.requests[0]!.body, Object.fromEntries(late.requests[0]!.headers));

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
