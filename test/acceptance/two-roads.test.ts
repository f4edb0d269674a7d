import { beforeAll, describe, expect, it } from 'vitest';

import { createApiKey, revokeApiKey } from '#tenants';

import { ApiStage } from '../support/api-stage.js';
import { expectProblem } from '../support/expect-problem.js';
import { type RawAnswer, sendRaw } from '../support/raw-http.js';
import { createTenantWithKey } from '../support/tenant.js';

const stage = new ApiStage();
let reader: string;

beforeAll(async () => {
  await stage.addEndpoint();
  reader = (await createTenantWithKey(stage.database.url, { scopes: ['events:read'] })).key;
});

const EVENT = '{"event_type":"a.b","payload":{"n":1}}';
const BATCH = `{"events":[${EVENT}]}`;

interface Ask {
  readonly method?: string;
  readonly version?: string;
  readonly headers?: readonly string[];
  readonly key?: string | null;
  readonly body?: string;
}

async function ask(
  target: string,
  { method = 'POST', version = '1.1', headers, key, body = EVENT }: Ask = {},
): Promise<RawAnswer> {
  const own = headers ?? ['content-type: application/json'];
  const head = [
    `${method} ${target} HTTP/${version}`,
    ...(own.includes('host:none') ? [] : ['host: api']),
    ...(key === null ? [] : [`authorization: Bearer ${key ?? stage.tenant.key}`]),
    ...(own.some((line) => /^transfer-encoding/i.test(line))
      ? []
      : [`content-length: ${Buffer.byteLength(body)}`]),
    'x-request-id: of-the-test',
    ...own.filter((line) => line !== 'host:none'),
  ];
  const { answers, rest } = await sendRaw(stage.api.url, `${head.join('\r\n')}\r\n\r\n${body}`);
  expect([answers.length, rest.length]).toEqual([1, 0]);
  return answers[0]!;
}

/** An answer without what differs from one request to the next: times and new ids. */
function comparable({ status, headers, text }: RawAnswer): object {
  const same = (value: string) =>
    value.replaceAll(/(evt|dlv)_[0-9a-f]{32}/g, '$1').replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'time');
  const { date: _, ...others } = headers;
  const kept = Object.entries(others).map(([name, value]) => [name, same(String(value))]);
  return { status, headers: Object.fromEntries(kept), text: same(text) };
}

const JSON_TYPE = 'content-type: application/json';

describe.each([
  ['/v1/events', EVENT, '/V1/Events'],
  ['/v1/events/batch', BATCH, '/v1/events/batch/'],
])('POST %s ahead of Express answers as it does behind it', (exact, good, spelled) => {
  it.each<[string, Ask]>([
    ['a good request', { body: good }],
    ['no key', { key: null }],
    ['a key that is none', { key: 'x' }],
    ['no body', { body: '' }],
    ['no JSON', { body: '{' }],
    ['nothing that it knows', { body: '{"a":1}' }],
    ['a byte order mark', { body: `\ufeff${good}` }],
    ['another type', { headers: ['content-type: text/plain'] }],
    ['no type', { headers: [] }],
    ['a coding', { headers: [JSON_TYPE, 'content-encoding: identity'] }],
    [
      'two idempotency keys',
      { headers: [JSON_TYPE, 'idempotency-key: a', 'idempotency-key: b'], body: good },
    ],
    ['a malformed idempotency key', { headers: [JSON_TYPE, 'idempotency-key: a b'], body: good }],
    [
      'a body beyond all limits',
      {
        headers: [JSON_TYPE, 'transfer-encoding: chunked'],
        body: `900000\r\n${'x'.repeat(9_437_184)}\r\n0\r\n\r\n`,
      },
    ],
    ['an odd expectation', { headers: [JSON_TYPE, 'expect: gold'], body: '{}' }],
    [
      'chunks',
      {
        headers: [JSON_TYPE, 'transfer-encoding: chunked'],
        body: `${good.length.toString(16)}\r\n${good}\r\n0\r\n\r\n`,
      },
    ],
    ['no Host', { headers: [JSON_TYPE, 'host:none'], body: good }],
    ['HTTP/1.0 and no Host', { version: '1.0', headers: [JSON_TYPE, 'host:none'], body: good }],
    ['a wish to close', { headers: [JSON_TYPE, 'connection: close'], body: good }],
    ['another method', { method: 'PUT', body: good }],
    ['OPTIONS', { method: 'OPTIONS', body: '' }],
  ])('%s', async (_what, request) => {
    expect(comparable(await ask(exact, request))).toEqual(comparable(await ask(spelled, request)));
  });

  it('a key without the scope', async () => {
    const answer = await ask(exact, { key: reader });
    expectProblem(answer, 403, 'insufficient_scope');
    expect(comparable(answer)).toEqual(comparable(await ask(spelled, { key: reader })));
  });
});

it.each<[string, number]>([
  ['/v1/events/', 201],
  ['/V1/EVENTS', 201],
  ['/v1/events?', 201],
  ['/v1/events?x=1', 422],
  ['/v1/events?__proto__=1', 422],
  ['/v1/events#x', 201],
  ['http://elsewhere/v1/events', 201],
  ['http://elsewhere/v1/events?x=1', 422],
  ['//v1/events', 404],
  ['/v1//events', 404],
  ['/v1/events//', 404],
  ['/v1/%65vents', 404],
  ['/v1/events%2f', 404],
  ['/v1/./events', 404],
  ['/x/../v1/events', 404],
  ['/v1/events;x', 404],
  ['/v1/events/batch/x', 404],
  ['*', 404],
])(
  'a target that is not exactly the route goes to Express, which knows it or not: POST %s is %i',
  async (target, status) => {
    expect((await ask(target)).status).toBe(status);
  },
);

it('both roads count under the same route', async () => {
  const count = async (): Promise<number> => {
    const { text } = await stage.client.get('/metrics');
    const line = /^waybill_http_requests_total\{method="POST",route="\/v1\/events",status="422"\} (\d+)$/m;
    return Number(line.exec(text)?.[1] ?? 0);
  };
  const before = await count();
  for (const target of ['/v1/events', '/v1/events/']) await ask(target, { body: '{}' });
  expect(await count()).toBe(before + 2);
});

it('a key is refused by every request that comes after its revocation, also beside look-ups that began before it', async () => {
  const { tenantId } = stage.tenant;
  const made = await createApiKey(stage.pool, tenantId, { name: 'revoked', scopes: ['admin'] });
  const client = stage.clientOf(stage.api, made.key);
  expect((await client.publish('a.b', {})).status).toBe(201);
  // Both flights have read the key as it was, and their answers are on the way.
  const lookUp = stage.proxy.on('from waybill.api_keys', { moment: 'after', action: 'swallow', times: 2 });
  const earlier = [client.publish('a.b', {})];
  await lookUp.hit;
  earlier.push(client.publish('a.b', {}));
  await expect.poll(() => lookUp.held).toBe(2);
  await revokeApiKey(stage.pool, tenantId, made.id);
  const later = Array.from({ length: 20 }, () => client.publish('a.b', {}));
  await expect.poll(async () => (await openRequests()) >= 23).toBe(true);
  lookUp.release();
  for (const answer of await Promise.all(later)) expectProblem(answer, 401, 'invalid_api_key');
  expect((await Promise.all(earlier)).map(({ status }) => status)).toEqual([201, 201]);
});

async function openRequests(): Promise<number> {
  const text = await (await fetch(new URL('/metrics', stage.api.url))).text();
  return Number(/^waybill_http_requests_open (\d+)$/m.exec(text)?.[1]);
}
