import { gzipSync } from 'node:zlib';

import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';

import { createApiKey, formatKeyText, revokeApiKey } from '#tenants';

import { ApiStage, type CreatedEndpoint } from '../support/api-stage.js';
import { expectAnyProblem, expectProblem } from '../support/expect-problem.js';
import { expectAlive } from '../support/expect-terminal.js';
import { type RawAnswer, sendRaw } from '../support/raw-http.js';
import { rowCounts } from '../support/row-counts.js';
import { createTenantWithKey } from '../support/tenant.js';

const stage = new ApiStage();
let endpoint: CreatedEndpoint;
let before: Awaited<ReturnType<typeof rowCounts>>;

beforeAll(async () => {
  endpoint = await stage.addEndpoint();
});

// Whatever is refused here stores nothing and does the process no harm.
beforeEach(async () => {
  before = await rowCounts(stage.pool);
});
afterEach(async () => {
  expect(await rowCounts(stage.pool)).toEqual(before);
  expect(await stage.client.get('/readyz')).toMatchObject({ status: 200 });
  expectAlive(stage.api);
});

const EVENT = '{"event_type":"a.b","payload":{}}';
const NOBODY = '0'.repeat(32);

/** A raw request with the key of the tenant; the body's length is announced unless told otherwise. */
function raw(requestLine: string, headers: readonly string[] = [], body: Buffer | string = ''): Buffer {
  const bytes = Buffer.from(body);
  const head = [
    requestLine,
    ...(headers.some((line) => /^host:/i.test(line)) ? [] : ['host: api']),
    ...(headers.some((line) => /^authorization:/i.test(line))
      ? []
      : [`authorization: Bearer ${stage.tenant.key}`]),
    ...(bytes.length === 0 || headers.some((line) => /^(content-length|transfer-encoding):/i.test(line))
      ? []
      : [`content-length: ${bytes.length}`]),
    ...headers,
  ].filter((line) => line !== 'host:none');
  return Buffer.concat([Buffer.from(`${head.join('\r\n')}\r\n\r\n`, 'latin1'), bytes]);
}

const JSON_TYPE = 'content-type: application/json';

async function answerTo(request: Buffer, options = {}): Promise<RawAnswer> {
  const { answers, rest } = await sendRaw(stage.api.url, request, options);
  expect([answers.length, rest.length]).toEqual([1, 0]);
  return answers[0]!;
}

describe('a route', () => {
  it.each([
    ['GET', '/'],
    ['GET', '/v1'],
    ['GET', '/v1/nothing'],
    ['GET', '/v2/events'],
    ['GET', '/v1/events/a/b'],
    ['POST', '/v1/deliveries/x/replay/y'],
    ['GET', '//v1/events'],
    ['GET', '/v1/../../etc/passwd'],
    ['GET', '/V1%2fevents'],
  ])('that does not exist is 404: %s %s', async (method, path) => {
    expectProblem(await answerTo(raw(`${method} ${path} HTTP/1.1`)), 404, 'route_not_found');
  });

  it.each([
    ['PUT', '/v1/events', 'GET, HEAD, POST'],
    ['DELETE', '/v1/events', 'GET, HEAD, POST'],
    ['GET', '/v1/deliveries/x/replay', 'POST'],
    ['POST', '/v1/deliveries', 'GET, HEAD'],
    ['PUT', '/v1/endpoints/x', 'DELETE, GET, HEAD, PATCH'],
    ['POST', '/v1/dead-letters', 'GET, HEAD'],
    ['OPTIONS', '/v1/events', 'GET, HEAD, POST'],
    ['TRACE', '/v1/events', 'GET, HEAD, POST'],
    ['POST', '/healthz', 'GET, HEAD'],
  ])('does not take another method: %s %s is 405 and says which', async (method, path, allow) => {
    const answer = await answerTo(raw(`${method} ${path} HTTP/1.1`));
    expectProblem(answer, 405, 'method_not_allowed');
    expect(answer.headers['allow']).toBe(allow);
  });
});

it.each([
  'POST /v1/events',
  'POST /v1/endpoints',
  'GET /v1/events/evt_x',
  'PATCH /v1/endpoints/ep_x',
  'DELETE /v1/endpoints/ep_x',
])('a query parameter that nobody would read is refused: %s', async (route) => {
  const [method, path] = route.split(' ');
  const answer = await answerTo(raw(`${method} ${path}?not_before=x HTTP/1.1`));
  expectProblem(answer, 422, 'unknown_field');
});

describe('[row 88] a key', () => {
  const bearer = (text: string) => stage.client.get('/v1/events', { authorization: text });

  it.each(['', 'Basic dXNlcjpwYXNz', 'wb_live_x', 'Bearer_x', 'Token x'])(
    'that is missing or of another scheme is asked for: %j',
    async (text) => {
      expectProblem(await bearer(text), 401, 'authentication_required');
    },
  );

  it('that is malformed, unknown, changed or of another kind is not valid, whatever it looks like', async () => {
    const { key } = stage.tenant;
    const last = key.endsWith('a') ? 'b' : 'a';
    const texts = [
      '',
      'x',
      'wb_live_',
      key.slice(0, -1),
      key.slice(0, -1) + last,
      `${key}a`,
      `${key} a`,
      key.toUpperCase(),
      key.replace('wb_live', 'wb_test'),
      formatKeyText('01890000-0000-7000-8000-000000000000'),
      formatKeyText(keyIdOf(key)),
      'x'.repeat(8_000),
      '\u00e9'.repeat(10),
      `' or 1=1 --`,
    ];
    for (const text of texts) expectProblem(await bearer(`Bearer ${text}`), 401, 'invalid_api_key');
    expect((await bearer(`bearer   ${key}`)).status).toBe(200);
  });

  it('is refused from the next request after it was revoked, and when it has expired', async () => {
    const { tenantId } = stage.tenant;
    const made = await createApiKey(stage.pool, tenantId, { name: 'short-lived', scopes: ['admin'] });
    const client = stage.clientOf(stage.api, made.key);
    expect((await client.get('/v1/events')).status).toBe(200);
    expect((await revokeApiKey(stage.pool, tenantId, made.id)).status).toBe('revoked');
    expectProblem(await client.get('/v1/events'), 401, 'invalid_api_key');
    expectProblem(await client.publish('a.b', {}), 401, 'invalid_api_key');
    const late = await createApiKey(stage.pool, tenantId, { name: 'late', scopes: ['admin'] });
    await stage.pool.query(
      `update waybill.api_keys set expires_at = now() - interval '1 second' where id = $1`,
      [late.id],
    );
    expectProblem(await stage.clientOf(stage.api, late.key).get('/v1/events'), 401, 'invalid_api_key');
    before = await rowCounts(stage.pool);
  });

  it('without the scope, or of a suspended tenant, is refused with 403', async () => {
    const reader = await createTenantWithKey(stage.database.url, { scopes: ['events:read'] });
    before = await rowCounts(stage.pool);
    const client = stage.clientOf(stage.api, reader.key);
    expect((await client.get('/v1/events')).status).toBe(200);
    for (const refused of [
      client.publish('a.b', {}),
      client.post('/v1/events/batch', { events: [] }),
      client.get('/v1/endpoints'),
      client.post('/v1/endpoints', { url: 'x' }),
      client.get('/v1/deliveries'),
      client.post(`/v1/deliveries/dlv_${NOBODY}/replay`),
      client.get('/v1/dead-letters'),
      client.patch(`/v1/endpoints/ep_${NOBODY}`, {}),
      client.delete(`/v1/endpoints/ep_${NOBODY}`),
    ])
      expectProblem(await refused, 403, 'insufficient_scope');
    await stage.pool.query('update waybill.tenants set suspended_at = now() where id = $1', [
      reader.tenantId,
    ]);
    expectProblem(await client.get('/v1/events'), 403, 'tenant_suspended');
  });
});

function keyIdOf(key: string): string {
  const hex = key.split('_')[2]!;
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}

describe('a body', () => {
  it.each<[string, Buffer | string, number, string]>([
    ['nothing', '', 400, 'invalid_json'],
    ['white space', ' \r\n', 400, 'invalid_json'],
    ['no JSON', 'hello', 400, 'invalid_json'],
    ['JSON with something behind it', `${EVENT}x`, 400, 'invalid_json'],
    ['two documents', EVENT + EVENT, 400, 'invalid_json'],
    ['a cut document', EVENT.slice(0, -1), 400, 'invalid_json'],
    ['a comma too many', '{"event_type":"a","payload":1,}', 400, 'invalid_json'],
    ['single quotes', "{'event_type':'a','payload':1}", 400, 'invalid_json'],
    ['NaN', '{"event_type":"a","payload":NaN}', 400, 'invalid_json'],
    ['a number with a leading zero', '{"event_type":"a","payload":01}', 400, 'invalid_json'],
    ['a comment', '{"event_type":"a","payload":1/**/}', 400, 'invalid_json'],
    ['a raw control character', '{"event_type":"a","payload":"\n"}', 400, 'invalid_json'],
    ['a byte order mark', `\ufeff${EVENT}`, 400, 'invalid_encoding'],
    [
      'bytes that are no UTF-8',
      Buffer.from('{"event_type":"a","payload":"\xff"}', 'latin1'),
      400,
      'invalid_encoding',
    ],
    ['an encoded surrogate', Buffer.from('7b2261223a22eda080227d', 'hex'), 400, 'invalid_encoding'],
    ['UTF-16', Buffer.from(EVENT, 'utf16le'), 400, 'invalid_json'],
    ['an array', '[]', 422, 'validation_failed'],
    ['a string', '"a"', 422, 'validation_failed'],
    ['null', 'null', 422, 'validation_failed'],
    ['arrays 100,000 deep', `{"event_type":"a","payload":${'['.repeat(100_000)}`, 400, 'json_too_deep'],
    [
      'objects 101 deep',
      `{"event_type":"a","payload":${'{"a":'.repeat(101)}1${'}'.repeat(102)}`,
      400,
      'json_too_deep',
    ],
    [
      '10,001 keys',
      `{"event_type":"a","payload":{${'"k":1,'.repeat(10_000)}"k":1}}`,
      400,
      'json_too_many_keys',
    ],
    ['a field twice', '{"event_type":"a","payload":1,"payload":2}', 400, 'duplicate_field'],
    [
      'a field twice, once escaped',
      '{"event_type":"a","payload":1,"\\u0070ayload":2}',
      400,
      'duplicate_field',
    ],
    [
      'metadata with a field twice',
      '{"event_type":"a","payload":1,"metadata":{"a":"1","a":"2"}}',
      400,
      'duplicate_field',
    ],
    ['an unknown field', '{"event_type":"a","payload":1,"eventtype":"a"}', 422, 'unknown_field'],
    ['__proto__', '{"event_type":"a","payload":1,"__proto__":{"admin":true}}', 422, 'unknown_field'],
    ['constructor', '{"event_type":"a","payload":1,"constructor":{}}', 422, 'unknown_field'],
    [
      'a key where only a header may bring it',
      '{"event_type":"a","payload":1,"idempotency_key":"k"}',
      422,
      'unknown_field',
    ],
    ['no type', '{"payload":1}', 422, 'validation_failed'],
    ['no payload', '{"event_type":"a"}', 422, 'validation_failed'],
    ['nothing but braces', '{}', 422, 'validation_failed'],
    ['a number as type', '{"event_type":1,"payload":1}', 422, 'invalid_event_type'],
    ['null as type', '{"event_type":null,"payload":1}', 422, 'invalid_event_type'],
    ['an empty type', '{"event_type":"","payload":1}', 422, 'invalid_event_type'],
    ['a type with a star', '{"event_type":"a.*","payload":1}', 422, 'invalid_event_type'],
    [
      'a type of 257 characters',
      `{"event_type":"${'a'.repeat(257)}","payload":1}`,
      422,
      'invalid_event_type',
    ],
    [
      "an operator's type",
      '{"event_type":"waybill.endpoint.disabled","payload":1}',
      422,
      'invalid_event_type',
    ],
    [
      'a time that is none',
      '{"event_type":"a","payload":1,"not_before":"tomorrow"}',
      422,
      'validation_failed',
    ],
    ['a time as number', '{"event_type":"a","payload":1,"not_before":1}', 422, 'validation_failed'],
    [
      '30 February',
      '{"event_type":"a","payload":1,"not_before":"2026-02-30T00:00:00Z"}',
      422,
      'validation_failed',
    ],
    [
      'a time in a hundred years',
      '{"event_type":"a","payload":1,"not_before":"2126-01-01T00:00:00Z"}',
      422,
      'validation_failed',
    ],
    ['metadata that is a list', '{"event_type":"a","payload":1,"metadata":[]}', 422, 'validation_failed'],
    ['metadata with a number', '{"event_type":"a","payload":1,"metadata":{"a":1}}', 422, 'validation_failed'],
    [
      'metadata with a lone surrogate',
      '{"event_type":"a","payload":1,"metadata":{"a":"\\ud800"}}',
      422,
      'validation_failed',
    ],
    [
      'metadata of 17 entries',
      `{"event_type":"a","payload":1,"metadata":{${Array.from({ length: 17 }, (_, n) => `"k${n}":""`).join()}}}`,
      422,
      'validation_failed',
    ],
  ])('of an event that is, or has, %s', async (_what, body, status, code) => {
    expectProblem(await answerTo(raw('POST /v1/events HTTP/1.1', [JSON_TYPE], body)), status, code);
  });

  it.each<[string, string, number, string]>([
    ['no list', '{}', 422, 'validation_failed'],
    ['an empty list', '{"events":[]}', 422, 'validation_failed'],
    ['null', '{"events":null}', 422, 'validation_failed'],
    ['a list of nothing', '{"events":[null]}', 422, 'validation_failed'],
    ['a list of lists', '{"events":[[]]}', 422, 'validation_failed'],
    ['a bare list', '[{"event_type":"a","payload":1}]', 422, 'validation_failed'],
    ['a second field', `{"events":[${EVENT}],"more":1}`, 422, 'unknown_field'],
    ['the list twice', `{"events":[${EVENT}],"events":[]}`, 400, 'duplicate_field'],
    [
      '1,001 events',
      `{"events":[${Array.from({ length: 1_001 }, () => EVENT).join()}]}`,
      422,
      'too_many_events',
    ],
    ['an event with a field twice', '{"events":[{"payload":1,"payload":2}]}', 400, 'duplicate_field'],
    [
      'an event 101 deep',
      `{"events":[{"event_type":"a","payload":${'['.repeat(101)}${']'.repeat(101)}}]}`,
      400,
      'json_too_deep',
    ],
  ])('of a batch that has %s', async (_what, body, status, code) => {
    expectProblem(await stage.client.post('/v1/events/batch', body), status, code);
  });

  it.each<[string, object | string, number, string]>([
    ['no URL', {}, 422, 'validation_failed'],
    ['a URL of another type', { url: ['http://a'] }, 422, 'validation_failed'],
    ['a URL that is an object', { url: { toString: 'x' } }, 422, 'validation_failed'],
    ['a URL that is none', { url: 'a b' }, 422, 'invalid_destination'],
    ['another scheme', { url: 'ftp://127.0.0.1/' }, 422, 'invalid_destination'],
    ['a port that is none', { url: 'http://127.0.0.1:99999/' }, 422, 'invalid_destination'],
    [
      'a URL of 3,000 characters',
      { url: `http://127.0.0.1/${'a'.repeat(3_000)}` },
      422,
      'invalid_destination',
    ],
    ['a destination inside', { url: 'http://10.0.0.1/' }, 422, 'invalid_destination'],
    ['null for a description', { url: 'http://127.0.0.1/', description: null }, 422, 'validation_failed'],
    [
      'a description of 501 characters',
      { url: 'http://127.0.0.1/', description: 'a'.repeat(501) },
      422,
      'validation_failed',
    ],
    ['a status nobody knows', { url: 'http://127.0.0.1/', status: 'deleted' }, 422, 'validation_failed'],
    ['a text for a list', { url: 'http://127.0.0.1/', event_types: '*' }, 422, 'validation_failed'],
    [
      'an object for a list',
      { url: 'http://127.0.0.1/', event_types: { length: 1, 0: 'a' } },
      422,
      'validation_failed',
    ],
    ['a number in a list', { url: 'http://127.0.0.1/', event_types: ['a', 1] }, 422, 'validation_failed'],
    ['a list of lists', { url: 'http://127.0.0.1/', event_types: [['a']] }, 422, 'validation_failed'],
    [
      '101 entries',
      { url: 'http://127.0.0.1/', event_types: Array.from({ length: 101 }, (_, n) => `a${n}`) },
      422,
      'validation_failed',
    ],
    [
      'a pattern of another kind',
      { url: 'http://127.0.0.1/', event_types: ['a.**'] },
      422,
      'validation_failed',
    ],
    [
      'an operator event that there is not',
      { url: 'http://127.0.0.1/', event_types: ['a', 'waybill.endpoint.disabld'] },
      422,
      'validation_failed',
    ],
    ['an id', { url: 'http://127.0.0.1/', id: `ep_${NOBODY}` }, 422, 'unknown_field'],
    ['a tenant', { url: 'http://127.0.0.1/', tenant_id: NOBODY, tenantId: NOBODY }, 422, 'unknown_field'],
    ['__proto__', '{"url":"http://127.0.0.1/","__proto__":{"status":"paused"}}', 422, 'unknown_field'],
    ['constructor', '{"url":"http://127.0.0.1/","constructor":{"prototype":{}}}', 422, 'unknown_field'],
    ['toString', '{"url":"http://127.0.0.1/","toString":1}', 422, 'unknown_field'],
    [
      'constructor in a field',
      '{"url":"http://127.0.0.1/","event_types":[{"constructor":1}]}',
      422,
      'validation_failed',
    ],
    [
      'an object of constructor',
      '{"url":"http://127.0.0.1/","status":{"constructor":1}}',
      422,
      'validation_failed',
    ],
    ['a field twice', '{"url":"http://127.0.0.1/","url":"http://127.0.0.1/"}', 400, 'duplicate_field'],
    ['a list around it', '[{"url":"http://127.0.0.1/"}]', 422, 'validation_failed'],
    ['no JSON', 'url=http://127.0.0.1/', 400, 'invalid_json'],
    ['70 KB', { url: 'http://127.0.0.1/', description: 'a'.repeat(70_000) }, 413, 'body_too_large'],
  ])('of an endpoint that has %s', async (_what, body, status, code) => {
    expectProblem(await stage.client.post('/v1/endpoints', body), status, code);
    const patched = await stage.client.patch(`/v1/endpoints/${endpoint.id}`, body);
    if (JSON.stringify(body) !== '{}') expectProblem(patched, status, code);
  });

  it('of which several fields are wrong is told all of them: a word for each, and a sentence for people', async () => {
    const answer = await stage.client.post('/v1/endpoints', { description: 1, status: 'off' });
    const { detail, details } = expectProblem(answer, 422, 'validation_failed');
    expect(details).toEqual([
      { field: 'url', reason: 'missing' },
      { field: 'description', reason: 'invalid' },
      { field: 'status', reason: 'invalid' },
    ]);
    expect(detail).toBe(
      'url must be a string; description must be a string; status must be one of enabled, paused, disabled.',
    );
  });

  it.each<[string, string[], number, string]>([
    ['text/plain', ['content-type: text/plain'], 415, 'unsupported_content_type'],
    ['no type', [], 415, 'unsupported_content_type'],
    ['an empty type', ['content-type: '], 415, 'unsupported_content_type'],
    ['a form', ['content-type: application/x-www-form-urlencoded'], 415, 'unsupported_content_type'],
    ['another charset', ['content-type: application/json; charset=utf-16'], 415, 'unsupported_content_type'],
    ['a longer name', ['content-type: application/jsonx'], 415, 'unsupported_content_type'],
    ['gzip', [JSON_TYPE, 'content-encoding: gzip'], 415, 'unsupported_content_encoding'],
    ['identity by name', [JSON_TYPE, 'content-encoding: identity'], 415, 'unsupported_content_encoding'],
    ['an unknown coding', [JSON_TYPE, 'content-encoding: gzip, gzip'], 415, 'unsupported_content_encoding'],
  ])('announced as %s', async (_what, headers, status, code) => {
    expectProblem(await answerTo(raw('POST /v1/events HTTP/1.1', headers, EVENT)), status, code);
    expectProblem(await answerTo(raw('POST /v1/endpoints HTTP/1.1', headers, EVENT)), status, code);
  });

  it('[H19] that unpacks to 50 MB is not unpacked', async () => {
    const bomb = gzipSync(Buffer.alloc(50_000_000));
    const answer = await answerTo(
      raw('POST /v1/events HTTP/1.1', [JSON_TYPE, 'content-encoding: gzip'], bomb),
    );
    expectProblem(answer, 415, 'unsupported_content_encoding');
  });

  it('that is too large is refused, whether its length is announced or not', async () => {
    const announced = raw('POST /v1/events HTTP/1.1', [JSON_TYPE, 'content-length: 400000'], '{');
    expectProblem(await answerTo(announced), 413, 'body_too_large');
    const huge = raw('POST /v1/events HTTP/1.1', [JSON_TYPE, 'content-length: 99999999999999'], '{');
    expectProblem(await answerTo(huge), 413, 'body_too_large');
    const chunk = `10000\r\n${'x'.repeat(65_536)}\r\n`;
    const chunked = raw(
      'POST /v1/events HTTP/1.1',
      [JSON_TYPE, 'transfer-encoding: chunked'],
      `${chunk.repeat(8)}0\r\n\r\n`,
    );
    expectProblem(await answerTo(chunked), 413, 'body_too_large');
    const batch = raw('POST /v1/events/batch HTTP/1.1', [JSON_TYPE, 'content-length: 8388609'], '{');
    expectProblem(await answerTo(batch), 413, 'body_too_large');
  });

  it('that ends before its announced length is refused', async () => {
    const cut = raw('POST /v1/events HTTP/1.1', [JSON_TYPE, `content-length: ${EVENT.length + 10}`], EVENT);
    expectProblem(await answerTo(cut, { end: true }), 400, 'invalid_request');
    const length = EVENT.length.toString(16);
    const chunked = raw(
      'POST /v1/events HTTP/1.1',
      [JSON_TYPE, 'transfer-encoding: chunked'],
      `${length}\r\n${EVENT}\r\n`,
    );
    expectProblem(await answerTo(chunked, { end: true }), 400, 'invalid_request');
  });
});

describe('an id', () => {
  it.each([
    ['/v1/events/', 'evt'],
    ['/v1/deliveries/', 'dlv'],
    ['/v1/dead-letters/', 'dlv'],
    ['/v1/endpoints/', 'ep'],
  ])('at %s that is of another kind or no id is 400, one that nobody has 404', async (path, prefix) => {
    const others = ['evt', 'dlv', 'ep', 'tnt', 'key', 'xyz', ''].filter((other) => other !== prefix);
    const texts = [
      ...others.map((other) => `${other}_${NOBODY}`),
      NOBODY,
      `${prefix}_${NOBODY}0`,
      `${prefix}_${NOBODY.slice(1)}`,
      `${prefix}_${'G'.repeat(32)}`,
      `${prefix.toUpperCase()}_${NOBODY}`,
      `${prefix}_${'A'.repeat(32)}`,
      `${prefix}_01890000-0000-7000-8000-000000000000`,
      '1',
      '-1',
      'null',
      '..%2f..%2fetc%2fpasswd',
      `${prefix}_${NOBODY}'--`,
      `${prefix}_${NOBODY}%0a`,
      '%f0%9f%98%80',
      'x'.repeat(4_000),
    ];
    for (const text of texts) expectProblem(await stage.client.get(path + text), 400, 'invalid_id');
    for (const hex of [NOBODY, 'f'.repeat(32), '7'.repeat(32)])
      expect(expectAnyProblem(await stage.client.get(`${path}${prefix}_${hex}`)).status).toBe(404);
  });

  it('in a broken %-sequence is refused', async () => {
    for (const path of ['/v1/events/%', '/v1/events/%zz', '/v1/events/%e0%a4', '/v1/endpoints/%ff']) {
      for (const method of ['GET', 'PUT', 'DELETE']) {
        const answer = await answerTo(raw(`${method} ${path} HTTP/1.1`));
        expectProblem(answer, 400, 'invalid_request');
      }
    }
  });
});

describe('[row 90] the query of a list', () => {
  const LISTS = ['/v1/events', '/v1/deliveries', '/v1/dead-letters', '/v1/endpoints'];

  it.each(LISTS)('%s takes limits from 1 to 100 and cursors of its own only', async (path) => {
    for (const limit of ['0', '101', '-1', '', 'ten', '1.5', '1e2', '0x10', '%20', '1000000000000', '１'])
      expectProblem(await stage.client.get(`${path}?limit=${encodeURI(limit)}`), 422, 'invalid_limit');
    expectProblem(await stage.client.get(`${path}?limit=1&limit=2`), 422, 'invalid_limit');
    const forged = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');
    const uuid = '01890000-0000-7000-8000-000000000000';
    const { tenantId } = stage.tenant;
    for (const cursor of [
      '',
      'x',
      '====',
      '%F0%9F',
      'a'.repeat(3_000),
      forged(null),
      forged({}),
      forged([]),
      forged(['other', uuid]),
      forged([path.slice(4)]),
      forged([path.slice(4), 1]),
      forged([path.slice(4), null, null]),
      forged([path.slice(4), `${uuid}'`, uuid]),
      forged([path.slice(4), uuid, uuid, uuid]),
      forged([path.slice(4), '9999-99-99T00:00:00Z', uuid]),
      `${forged([path.slice(4), uuid])}!`,
      'a'.repeat(10_240),
      forged([path.slice(4), tenantId]),
      forged([path.slice(4), tenantId, `${uuid}'`, uuid]),
      forged([path.slice(4), tenantId, '9999-99-99T00:00:00Z', uuid]),
      `${forged([path.slice(4), tenantId, uuid])}!`,
      ...LISTS.filter((other) => other !== path).flatMap((other) => [
        forged([other.slice(4), tenantId, uuid]),
        forged([other.slice(4), tenantId, uuid, uuid]),
        forged([other.slice(4), tenantId, '2026-01-01T00:00:00Z', uuid]),
      ]),
      forged([path.slice(4), uuid, uuid]),
    ])
      expectProblem(await stage.client.get(`${path}?cursor=${cursor}`), 422, 'invalid_cursor');
  });

  it.each(LISTS)('%s refuses parameters it does not know', async (path) => {
    for (const query of [
      'order=asc',
      'Limit=1',
      'limit[]=1',
      'limit[$gt]=1',
      '__proto__=1',
      'constructor=1',
      'toString=1',
      '__proto__[a]=1',
      'a',
      '%00=1',
    ])
      expectProblem(await stage.client.get(`${path}?${query}`), 422, 'unknown_field');
  });

  it.each<[string, number, string]>([
    ['/v1/events?event_type=a%20b', 422, 'validation_failed'],
    ['/v1/events?event_type=', 422, 'validation_failed'],
    ['/v1/events?event_type=a&event_type=b', 422, 'validation_failed'],
    [`/v1/events?event_type=${'a'.repeat(257)}`, 422, 'validation_failed'],
    ['/v1/events?created_after=yesterday', 422, 'validation_failed'],
    ['/v1/events?created_after=', 422, 'validation_failed'],
    ['/v1/events?created_after=2026-01-01', 422, 'validation_failed'],
    ['/v1/events?created_after=-271821-04-20T00:00:00Z', 422, 'validation_failed'],
    [
      '/v1/events?created_after=2026-01-02T00:00:00Z&created_before=2026-01-01T00:00:00Z',
      422,
      'validation_failed',
    ],
    ['/v1/deliveries?state=lost', 422, 'validation_failed'],
    ['/v1/deliveries?state=dead&state=dead', 422, 'validation_failed'],
    ['/v1/deliveries?endpoint_id=x', 400, 'invalid_id'],
    ['/v1/deliveries?endpoint_id=x&endpoint_id=y', 422, 'validation_failed'],
    [`/v1/deliveries?event_id=ep_${NOBODY}`, 400, 'invalid_id'],
    ['/v1/dead-letters?resolved=yes', 422, 'validation_failed'],
    ['/v1/dead-letters?resolved=1', 422, 'validation_failed'],
    [`/v1/dead-letters?endpoint_id=evt_${NOBODY}`, 400, 'invalid_id'],
    ['/v1/dead-letters?died_after=2026-01-01', 422, 'validation_failed'],
    ['/v1/dead-letters?died_before=', 422, 'validation_failed'],
    [
      '/v1/dead-letters?died_after=2026-01-01T00:00:00Z&died_after=2026-01-01T00:00:00Z',
      422,
      'validation_failed',
    ],
  ])('%s is refused', async (path, status, code) => {
    expectProblem(await stage.client.get(path), status, code);
  });

  it('takes the last moment that can be written', async () => {
    for (const time of [
      '1970-01-01T00:00:00Z',
      '9999-12-31T23:59:59.999999999-23:59',
      '2026-01-01t00:00:00z',
    ])
      expect((await stage.client.get(`/v1/events?created_after=${time}`)).status).toBe(200);
  });
});

describe('on the wire', () => {
  it.each<[string, () => Buffer, number, string]>([
    [
      'a header of 20 KB',
      () => raw('GET /v1/events HTTP/1.1', [`x-long: ${'a'.repeat(20_000)}`]),
      431,
      'headers_too_large',
    ],
    ['a path of 20 KB', () => raw(`GET /v1/events/${'a'.repeat(20_000)} HTTP/1.1`), 431, 'headers_too_large'],
    ['no Host', () => raw('GET /v1/events HTTP/1.1', ['host:none']), 400, 'invalid_request'],
    ['garbage', () => Buffer.from('\u0001\u0002 garbage \r\n\r\n'), 400, 'invalid_request'],
    ['a TLS greeting', () => Buffer.from('160301020001000001fc0303', 'hex'), 400, 'invalid_request'],
    ['a method nobody knows', () => raw('BREW /v1/events HTTP/1.1'), 400, 'invalid_request'],
    ['HTTP/2', () => Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'), 400, 'invalid_request'],
    ['HTTP/9.9', () => raw('GET /v1/events HTTP/9.9'), 400, 'invalid_request'],
    [
      'a folded header',
      () => raw('GET /v1/events HTTP/1.1', ['x-a: b\r\n c : d', 'no colon here']),
      400,
      'invalid_request',
    ],
    [
      'two lengths',
      () => raw('POST /v1/events HTTP/1.1', [JSON_TYPE, 'content-length: 2', 'content-length: 3'], EVENT),
      400,
      'invalid_request',
    ],
    [
      'a length and chunks',
      () =>
        raw(
          'POST /v1/events HTTP/1.1',
          [JSON_TYPE, 'content-length: 5', 'transfer-encoding: chunked'],
          '0\r\n\r\n',
        ),
      400,
      'invalid_request',
    ],
    [
      'a negative length',
      () => raw('POST /v1/events HTTP/1.1', [JSON_TYPE, 'content-length: -1'], EVENT),
      400,
      'invalid_request',
    ],
    [
      'chunks of another coding',
      () => raw('POST /v1/events HTTP/1.1', [JSON_TYPE, 'transfer-encoding: gzip'], EVENT),
      400,
      'invalid_request',
    ],
    [
      'a broken chunk',
      () => raw('POST /v1/events HTTP/1.1', [JSON_TYPE, 'transfer-encoding: chunked'], 'zz\r\nhello\r\n'),
      400,
      'invalid_request',
    ],
    [
      'a broken second chunk',
      () => raw('POST /v1/events HTTP/1.1', [JSON_TYPE, 'transfer-encoding: chunked'], '1\r\n{\r\nzz\r\n'),
      400,
      'invalid_request',
    ],
    ['a target that is none', () => raw('GET * HTTP/1.1'), 404, 'route_not_found'],
    [
      'a bare line feed in a header',
      () => raw('GET /v1/events HTTP/1.1', ['x-a: b\nx-b: c\u0000']),
      400,
      'invalid_request',
    ],
  ])('%s is refused', async (_what, request, status, code) => {
    expectProblem(await answerTo(request()), status, code);
  });

  it('an expectation is met or refused, never left without an answer', async () => {
    const expecting = raw('POST /v1/events HTTP/1.1', [JSON_TYPE, 'expect: 100-continue'], '{}');
    const continued = await sendRaw(stage.api.url, expecting);
    expect(continued.interim).toBe(1);
    expectProblem(continued.answers[0]!, 422, 'validation_failed');
    expectProblem(
      await answerTo(raw('POST /v1/events HTTP/1.1', [JSON_TYPE, 'expect: gold'], '{}')),
      422,
      'validation_failed',
    );
    expectProblem(await answerTo(raw('GET /nowhere HTTP/1.1', ['expect: gold'])), 404, 'route_not_found');
  });

  it('HTTP/1.0 gets the same answers', async () => {
    expectProblem(await answerTo(raw('GET /nowhere HTTP/1.0', ['host:none'])), 404, 'route_not_found');
    expectProblem(
      await answerTo(raw('POST /v1/events HTTP/1.0', ['host:none', JSON_TYPE], '{}')),
      422,
      'validation_failed',
    );
    expect((await answerTo(raw('GET /v1/events HTTP/1.0', ['host:none']))).status).toBe(200);
  });

  it('an upgrade is not taken', async () => {
    const upgrade = [
      'connection: upgrade',
      'upgrade: websocket',
      'sec-websocket-key: x',
      'sec-websocket-version: 13',
    ];
    expectProblem(await answerTo(raw('GET /nowhere HTTP/1.1', upgrade)), 404, 'route_not_found');
  });

  it('pipelined requests are answered in order', async () => {
    const requests = Buffer.concat([
      raw('GET /v1/events/x HTTP/1.1'),
      raw('POST /v1/events HTTP/1.1', [JSON_TYPE], '{}'),
      raw('GET /nowhere HTTP/1.1'),
    ]);
    const { answers } = await sendRaw(stage.api.url, requests, { answers: 3 });
    expect(answers.map(({ text }) => JSON.parse(text).code)).toEqual([
      'invalid_id',
      'validation_failed',
      'route_not_found',
    ]);
  });

  it('garbage behind a good request is never taken for its answer', async () => {
    for (let round = 0; round < 10; round += 1) {
      const requests = Buffer.concat([
        raw('GET /v1/events?limit=1 HTTP/1.1'),
        Buffer.from('\u0001garbage\r\n\r\n'),
      ]);
      const { answers } = await sendRaw(stage.api.url, requests, { answers: 2 });
      expect(answers).toHaveLength(2);
      expect(answers[0]!.status).toBe(200);
      expectProblem(answers[1]!, 400, 'invalid_request');
    }
  });

  it('a client that leaves in the middle does no harm', async () => {
    const whole = raw('POST /v1/events HTTP/1.1', [JSON_TYPE], '{"event_type":"a","payload":');
    for (let length = 0; length < whole.length; length += 23) {
      const cut = sendRaw(stage.api.url, whole.subarray(0, length), { end: true, answers: 1 });
      for (const answer of (await cut).answers) expectAnyProblem(answer);
    }
  });
});

it('[row 89] an error of ours tells nothing of SQL, paths or stacks', async () => {
  await stage.pool.query(`
    create function public.fail_loudly() returns trigger language plpgsql as $$
    begin
      raise exception 'select secret from waybill.endpoint_secrets at /srv/app/dist/main.js:1:1' using errcode = 'XX000';
    end $$;
    create trigger fail_loudly before insert on waybill.events for each statement execute function public.fail_loudly();
    create trigger fail_loudly before insert on waybill.endpoints for each statement execute function public.fail_loudly();
  `);
  try {
    const answers = [
      await stage.client.publish('a.b', {}),
      await stage.client.post('/v1/events/batch', { events: [{ event_type: 'a', payload: 1 }] }),
      await stage.client.post('/v1/endpoints', { url: stage.receiver.url }),
    ];
    for (const answer of answers) {
      const body = expectProblem(answer, 500, 'internal_error');
      expect(body.detail).toBe('Something went wrong on our side.');
    }
    // It is in the log instead, under the id that the answer names.
    const { request_id: requestId } = JSON.parse(answers[0]!.text);
    const line = stage.api.logs().find((entry) => entry['request_id'] === requestId);
    expect(line).toMatchObject({ event: 'request.failed', sql_state: 'XX000' });
    expect(JSON.stringify(line)).not.toContain(stage.tenant.key);
  } finally {
    await stage.pool.query(
      'drop trigger fail_loudly on waybill.events; drop trigger fail_loudly on waybill.endpoints; drop function public.fail_loudly()',
    );
  }
});
