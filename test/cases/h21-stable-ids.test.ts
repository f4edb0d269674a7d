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
