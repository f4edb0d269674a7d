import { expect, it } from 'vitest';

import { ApiStage, QUICK_RETRIES } from '../support/api-stage.js';
import { expectTerminal } from '../support/expect-terminal.js';
import { verifySignature } from '../support/verify-signature.js';

const PAYLOAD = Buffer.from(
  '{"b":136.0,"a":12345678901234567890,"e":1E5,"z":-0,"u":"\\u00e9\\ud83d\\ude00","s":"a\\/b","n":1.10,"dup":1,"dup":2 ,\r\n\t"raw":"é😀" , "lone":"\\ud800"}',
);

interface Accepted {
  readonly id: string;
  readonly deliveries: readonly { readonly id: string }[];
}

const stage = new ApiStage();

it('[H08] sends the same bytes at the first attempt, the fourth, and a replay by another dispatcher', async () => {
  const { secret } = await stage.addEndpoint();
  const bytes = Buffer.concat([
    Buffer.from(' {"event_type" : "bytes.kept",  "payload"\n:\t'),
    PAYLOAD,
    Buffer.from(' }\r\n'),
  ]);
  let failures = 0;
  stage.receiver.answer(() => ((failures += 1) <= 3 ? 500 : 200));
  const first = await stage.bootDispatcher(QUICK_RETRIES);
  const posted = await stage.client.post<Accepted>('/v1/events', bytes);
  expect(posted.status).toBe(201);
  const deliveryId = posted.body.deliveries[0]!.id;
  await stage.receiver.waitFor(4);
  await expectTerminal(stage.pool, {
    receivers: [stage.receiver],
    apps: [stage.api, first],
    attemptLimit: 4,
  });
  await first.stop();

  const second = await stage.bootDispatcher(QUICK_RETRIES);
  expect(await stage.client.post(`/v1/deliveries/${deliveryId}/replay`)).toMatchObject({ status: 202 });
  await stage.receiver.waitFor(5);
  await expectTerminal(stage.pool, {
    receivers: [stage.receiver],
    apps: [stage.api, second],
    attemptLimit: 5,
  });

  await second.stop();

  const requests = stage.receiver.requestsFor(deliveryId);
  expect(requests.map((request) => request.header('waybill-attempt'))).toEqual(['1', '2', '3', '4', '5']);
  for (const request of requests) {
    expect(request.body.equals(PAYLOAD)).toBe(true);
    expect(request.header('content-length')).toBe(String(PAYLOAD.length));
    verifySignature(request, secret);
    expect(() =>
      verifySignature({ ...request, body: Buffer.concat([request.body, Buffer.from(' ')]) }, secret),
    ).toThrow(/signature/i);
  }
  const read = await stage.client.get(`/v1/events/${posted.body.id}`);
  expect(read.raw.includes(PAYLOAD)).toBe(true);
});

it('[H08] keeps a payload of any kind that JSON has', async () => {
  await stage.addEndpoint({ event_types: ['kind.kept'], url: `${stage.receiver.url}/kinds` });
  stage.receiver.answer(200);
  const dispatcher = await stage.bootDispatcher();
  for (const payload of [
    'null',
    'true',
    '-0.0e-0',
    '"\\u0000"',
    '[]',
    '{}',
    '""',
    '[1,[2,{"a":[]}]]',
    ' [ ] ',
  ]) {
    const posted = await stage.client.publish<Accepted>('kind.kept', Buffer.from(payload));
    expect(posted.status).toBe(201);
    const ids = posted.body.deliveries.map(({ id }) => id);
    await stage.receiver.waitFor(() => ids.every((id) => stage.receiver.requestsFor(id).length === 1));
    for (const id of ids) expect(stage.receiver.requestsFor(id)[0]!.body.toString()).toBe(payload.trim());
  }
  await expectTerminal(stage.pool, {
    receivers: [stage.receiver],
    apps: [stage.api, dispatcher],
    attemptLimit: 5,
  });
});
