import { beforeAll, describe, expect, it } from 'vitest';

import type { ApiResponse } from '../support/api-client.js';
import { ApiStage, QUICK_ATTEMPTS } from '../support/api-stage.js';
import { expectAnyProblem, expectProblem } from '../support/expect-problem.js';
import { expectTerminal } from '../support/expect-terminal.js';
import { sendRaw } from '../support/raw-http.js';
import { rowCounts } from '../support/row-counts.js';
import { verifySignature } from '../support/verify-signature.js';

interface Accepted {
  readonly id: string;
  readonly deliveries: readonly { readonly id: string }[];
}

const stage = new ApiStage();
let secret: string;

beforeAll(async () => {
  ({ secret } = await stage.addEndpoint());
});

it('[H09] delivers a payload with an escaped NUL in a value and in a key, byte for byte', async () => {
  const payloads = ['{"x":"a\\u0000b"}', '{"a\\u0000b":1}', '"\\u0000"'];
  const dispatcher = await stage.bootDispatcher();
  for (const payload of payloads) {
    const posted = await stage.client.publish<Accepted>('nul.sent', Buffer.from(payload));
    expect(posted.status).toBe(201);
    const { id } = posted.body.deliveries[0]!;
    const [request] = (
      await stage.receiver.waitFor(() => stage.receiver.requestsFor(id).length === 1)
    ).filter(({ deliveryId }) => deliveryId === id);
    expect(request!.body.toString()).toBe(payload);
    verifySignature(request!, secret);
    expect((await stage.client.get(`/v1/events/${posted.body.id}`)).text).toContain(`"payload":${payload}`);
  }
  await expectTerminal(stage.pool, {
    receivers: [stage.receiver],
    apps: [stage.api, dispatcher],
    attemptLimit: QUICK_ATTEMPTS,
  });
  await dispatcher.stop();
});

const url = 'http://127.0.0.1:8080/hook';
const post = (path: string, body: string) => (): Promise<ApiResponse<unknown>> =>
  stage.client.post(path, body);
const get = (path: string) => (): Promise<ApiResponse<unknown>> => stage.client.get(path);

describe('[H09] a NUL in', () => {
  it.each<[string, () => Promise<ApiResponse<unknown>>, number, string]>([
    [
      'the event type',
      post('/v1/events', '{"event_type":"a\\u0000b","payload":1}'),
      422,
      'invalid_event_type',
    ],
    [
      "a batch's event type",
      post('/v1/events/batch', '{"events":[{"event_type":"a\\u0000","payload":1}]}'),
      422,
      'invalid_event_type',
    ],
    [
      'an idempotency key',
      post('/v1/events/batch', '{"events":[{"event_type":"a","payload":1,"idempotency_key":"a\\u0000"}]}'),
      400,
      'invalid_idempotency_key',
    ],
    [
      'a metadata value',
      post('/v1/events', '{"event_type":"a","payload":1,"metadata":{"a":"\\u0000"}}'),
      422,
      'validation_failed',
    ],
    [
      'a metadata name',
      post('/v1/events', '{"event_type":"a","payload":1,"metadata":{"\\u0000":"a"}}'),
      422,
      'validation_failed',
    ],
    [
      'a time',
      post('/v1/events', '{"event_type":"a","payload":1,"not_before":"2026-01-01T00:00:00Z\\u0000"}'),
      422,
      'validation_failed',
    ],
    [
      "a field's name",
      post('/v1/events', '{"event_type":"a","payload":1,"a\\u0000":1}'),
      422,
      'unknown_field',
    ],
    [
      'a raw byte of the body',
      post('/v1/events', '{"event_type":"a","payload":"\u0000"}'),
      400,
      'invalid_json',
    ],
    [
      'a description',
      post('/v1/endpoints', `{"url":"${url}","description":"a\\u0000b"}`),
      422,
      'validation_failed',
    ],
    ['a URL', post('/v1/endpoints', '{"url":"http://127.0.0.1/\\u0000"}'), 422, 'invalid_destination'],
    [
      'a subscription',
      post('/v1/endpoints', `{"url":"${url}","event_types":["a\\u0000"]}`),
      422,
      'validation_failed',
    ],
    [
      'a secret',
      post('/v1/endpoints', `{"url":"${url}","secret":"whsec_\\u0000"}`),
      422,
      'validation_failed',
    ],
    ['a path', get('/v1/events/%00'), 400, 'invalid_id'],
    ['an id', get('/v1/events/evt_0000000000000000000000000000000%00'), 400, 'invalid_id'],
    ['a filter', get('/v1/events?event_type=a%00'), 422, 'validation_failed'],
    ['a filter by id', get('/v1/deliveries?endpoint_id=%00'), 400, 'invalid_id'],
    ['a filter by time', get('/v1/deliveries?created_after=%00'), 422, 'validation_failed'],
    ['a cursor', get('/v1/events?cursor=%00'), 422, 'invalid_cursor'],
    ["a parameter's name", get('/v1/events?a%00=1'), 422, 'unknown_field'],
  ])('%s is refused in the same way each time, and stores nothing', async (_where, request, status, code) => {
    const before = await rowCounts(stage.pool);
    for (let time = 0; time < 2; time += 1) expectProblem(await request(), status, code);
    expect(await rowCounts(stage.pool)).toEqual(before);
  });

  it('raw bytes of the request line or a header is refused', async () => {
    const before = await rowCounts(stage.pool);
    const auth = `authorization: Bearer ${stage.tenant.key}`;
    for (const head of [
      `GET /v1/events?event_type=\u0000 HTTP/1.1\r\nhost: a\r\n${auth}`,
      `GET /v1/events/\u0000 HTTP/1.1\r\nhost: a\r\n${auth}`,
      `POST /v1/events HTTP/1.1\r\nhost: a\r\n${auth}\r\nidempotency-key: a\u0000b\r\ncontent-type: application/json\r\ncontent-length: 2`,
    ]) {
      for (let time = 0; time < 2; time += 1) {
        const { answers } = await sendRaw(stage.api.url, `${head}\r\n\r\n{}`);
        expect(expectAnyProblem(answers[0]!).status).toBe(400);
      }
    }
    expect(await rowCounts(stage.pool)).toEqual(before);
  });
});
