import { afterAll, beforeAll, expect, it } from 'vitest';

import { createClient } from './api-client.js';
import { type Receiver, startReceiver } from './receiver.js';

let server: Receiver;
beforeAll(async () => {
  server = await startReceiver({
    answer: { status: 201, headers: { 'content-type': 'application/problem+json' }, body: '{"code":"x"}' },
  });
});
afterAll(() => server.close());

it('sends a key, sends objects as JSON and reads JSON answers', async () => {
  const response = await createClient(server.url, 'wb_key').patch('/v1/endpoints/1', {
    url: 'http://a.test',
  });
  expect(response).toMatchObject({ status: 201, body: { code: 'x' }, text: '{"code":"x"}' });
  const request = server.requests.at(-1)!;
  expect(request).toMatchObject({ method: 'PATCH', path: '/v1/endpoints/1' });
  expect(request.header('authorization')).toBe('Bearer wb_key');
  expect(request.header('content-type')).toBe('application/json');
  expect(request.body.toString()).toBe('{"url":"http://a.test"}');
});

it('publishes the bytes of a payload as they are', async () => {
  const payload = Buffer.from('{"b":1, "a":12345678901234567890123, "b":"\\u0000"}');
  await createClient(server.url, 'k').publish('order.paid', payload, {
    idempotencyKey: 'once',
    metadata: { a: 1 },
  });
  const request = server.requests.at(-1)!;
  expect(request.header('idempotency-key')).toBe('once');
  expect(request.body.toString()).toBe(
    `{"event_type":"order.paid","metadata":{"a":1},"payload":${payload.toString()}}`,
  );
});

it('sends no Authorization header without a key, and no body with GET', async () => {
  await createClient(server.url, null).get('/health');
  const request = server.requests.at(-1)!;
  expect([request.header('authorization'), request.header('content-length')]).toEqual([undefined, undefined]);
});
