import { beforeAll, expect, it } from 'vitest';

import { ApiStage, type CreatedEndpoint } from '../support/api-stage.js';
import { expectAnyProblem } from '../support/expect-problem.js';
import { expectAlive } from '../support/expect-terminal.js';
import { sendRaw } from '../support/raw-http.js';
import { type SeededRandom, seededRandom } from '../support/seeded-random.js';
import { SIZES } from '../support/sizes.js';

const LANES = 16;
const TIMEOUT_MS = 60_000 + SIZES.fuzzRequests * 15;

interface Accepted {
  readonly id: string;
  readonly deliveries: readonly { readonly id: string }[];
}

const stage = new ApiStage();
let endpoint: CreatedEndpoint;
let event: Accepted;

beforeAll(async () => {
  endpoint = await stage.addEndpoint();
  event = (await stage.client.publish<Accepted>('a.b', { n: 1 }, { idempotencyKey: 'known' })).body;
});

const ODD_TEXTS = [
  '',
  ' ',
  '\u0000',
  'a\u0000b',
  '%00',
  '%zz',
  "' or 1=1 --",
  '$1',
  '${7*7}',
  '../../etc/passwd',
  '\ud800',
  '\u202e',
  '😀',
  'é',
  '٣',
  '-0',
  '1e309',
  '9007199254740993',
  'null',
  'undefined',
  '[object Object]',
  '__proto__',
  'x'.repeat(300),
  '2026-02-30T00:00:00Z',
  '2026-01-31T12:00:00Z',
  '0001-01-01T00:00:00Z',
  '275760-09-13T00:00:00Z',
];

function oddText(random: SeededRandom): string {
  return random.chance(0.15) ? random.bytes(random.below(40)).toString('latin1') : random.pick(ODD_TEXTS);
}

function oddValue(random: SeededRandom, depth = 0): unknown {
  switch (random.below(depth > 3 ? 7 : 10)) {
    case 0:
      return null;
    case 1:
      return random.chance(0.5);
    case 2:
      return random.pick([0, -1, 1.5, 1e308, Number.MAX_SAFE_INTEGER, 101]);
    case 3:
    case 4:
      return oddText(random);
    case 5:
      return random.pick([
        'a.b',
        '*',
        'a.*',
        'enabled',
        'paused',
        stage.receiver.url,
        '2026-01-31T12:00:00Z',
      ]);
    case 6:
      return random.pick([event.id, endpoint.id, event.deliveries[0]!.id]);
    case 7:
      return Array.from({ length: random.below(4) }, () => oddValue(random, depth + 1));
    default:
      return Object.fromEntries(
        Array.from({ length: random.below(4) }, () => [fieldName(random), oddValue(random, depth + 1)]),
      );
  }
}

const FIELDS = [
  'event_type',
  'payload',
  'not_before',
  'metadata',
  'idempotency_key',
  'events',
  'url',
  'description',
  'event_types',
  'status',
  'secret',
  'retry',
  'schedule_seconds',
  'preset',
  'max_attempts',
  'timeout',
  'total_ms',
  'rate_per_second',
  'circuit',
  'consumer',
  'endpoint_id',
  'uid',
  'name',
  '__proto__',
  'constructor',
];

function fieldName(random: SeededRandom): string {
  return random.chance(0.8) ? random.pick(FIELDS) : oddText(random);
}

/** Bodies that are good at their path, to begin from. The subscription matches no type that is sent here. */
const GOOD_BODIES: readonly (readonly [path: RegExp, body: object])[] = [
  [/^\/v1\/events\/.*\/deliveries/, { endpoint_id: `ep_${'f'.repeat(32)}` }],
  [
    /^\/v1\/events(\?|$)/,
    { event_type: 'a.b', payload: { a: [1, 'é'] }, metadata: { a: 'b' }, not_before: '2026-01-31T12:00:00Z' },
  ],
  [
    /^\/v1\/events\/batch/,
    {
      events: [
        { event_type: 'a.b', payload: 1, idempotency_key: 'k' },
        { event_type: 'c', payload: null },
      ],
    },
  ],
  [
    /^\/v1\/endpoints(\?|$)/,
    {
      url: 'http://127.0.0.1:8080/x',
      description: 'd',
      event_types: ['never.*'],
      status: 'paused',
      retry: { schedule_seconds: [1, 2], jitter: 'full' },
      circuit: { failures: 3 },
    },
  ],
  [/^\/v1\/consumers(\?|$)/, { uid: 'fuzzed', name: 'n', metadata: { a: 'b' } }],
  [/^\/v1\/consumers\//, { name: 'm', metadata: null }],
  [/^\/v1\/endpoints\//, { status: 'enabled', retry: { preset: 'form' }, timeout: { total_ms: 900 } }],
];

function oddBody(random: SeededRandom, path: string): Buffer | undefined {
  if (random.chance(0.1)) return undefined;
  if (random.chance(0.1)) return random.bytes(random.below(200));
  const fitting = GOOD_BODIES.find(([pattern]) => pattern.test(path));
  const [, good] = fitting !== undefined && random.chance(0.8) ? fitting : random.pick(GOOD_BODIES);
  const base: Record<string, unknown> = { ...good };
  for (let change = random.below(3); change > 0; change -= 1) base[fieldName(random)] = oddValue(random);
  const bytes = Buffer.from(JSON.stringify(random.chance(0.9) ? base : oddValue(random)));
  return random.chance(0.3) ? damaged(random, bytes) : bytes;
}

/** Bytes flipped, cut, doubled or put in somewhere. */
function damaged(random: SeededRandom, bytes: Buffer): Buffer {
  const at = random.below(bytes.length + 1);
  switch (random.below(4)) {
    case 0: {
      const copy = Buffer.from(bytes);
      if (copy.length > 0) copy[at % copy.length] = random.below(256);
      return copy;
    }
    case 1:
      return bytes.subarray(0, at);
    case 2:
      return Buffer.concat([bytes.subarray(0, at), random.bytes(1 + random.below(8)), bytes.subarray(at)]);
    default:
      return Buffer.concat([bytes, bytes.subarray(at)]);
  }
}

function oddPath(random: SeededRandom): string {
  const id = random.chance(0.5)
    ? random.pick([
        event.id,
        endpoint.id,
        event.deliveries[0]!.id,
        `evt_${'0'.repeat(32)}`,
        `ep_${'f'.repeat(32)}`,
        'fuzzed',
        `con_${'0'.repeat(32)}`,
      ])
    : encodeURIComponent(wellFormed(oddText(random)));
  const path = random.pick([
    // Four of them, so that some get through even in a short run.
    ...Array.from({ length: 4 }, () => '/v1/events'),
    '/v1/events/batch',
    `/v1/events/${id}`,
    `/v1/events/${id}/cancel`,
    `/v1/events/${id}/deliveries`,
    '/v1/endpoints',
    `/v1/endpoints/${id}`,
    '/v1/consumers',
    `/v1/consumers/${id}`,
    '/v1/deliveries',
    `/v1/deliveries/${id}`,
    `/v1/deliveries/${id}/replay`,
    `/v1/deliveries/${id}/cancel`,
    `/v1/deliveries/${id}/explain`,
    '/v1/dead-letters',
    `/v1/dead-letters/${id}`,
    `/v1/${id}`,
    `/${id}`,
  ]);
  const query = Array.from({ length: random.chance(0.4) ? 1 + random.below(3) : 0 }, () => {
    const name = random.chance(0.9)
      ? random.pick([
          'limit',
          'cursor',
          'event_type',
          'created_after',
          'created_before',
          'endpoint_id',
          'event_id',
          'state',
          'resolved',
          'consumer',
          'uid',
        ])
      : wellFormed(oddText(random));
    const value = random.pick([
      oddText(random),
      '10',
      '100',
      'dead',
      'true',
      event.id,
      endpoint.id,
      'WyJldmVudHMiXQ',
    ]);
    return `${encodeURIComponent(name)}=${encodeURIComponent(wellFormed(value))}`;
  });
  return query.length === 0 ? path : `${path}?${query.join('&')}`;
}

/** encodeURIComponent throws for a lone surrogate. */
const wellFormed = (text: string): string => Buffer.from(text).toString();

const HEADERS: readonly string[] = [
  'content-encoding: gzip',
  'idempotency-key: known',
  'idempotency-key: a b',
  'idempotency-key: é',
  'if-match: "1"',
  'if-match: W/"x", *',
  'if-match: \u00ff',
  'expect: 100-continue',
  'expect: x',
  'transfer-encoding: chunked',
  'content-length: 7',
  'x-request-id: a/b',
  'accept: text/html',
  'x-http-method-override: DELETE',
  'origin: http://evil.example',
  'connection: close',
  'range: bytes=0-1',
];

function oddRequest(random: SeededRandom): Buffer {
  const method = random.pick(['GET', 'GET', 'POST', 'POST', 'POST', 'PATCH', 'DELETE', 'PUT', 'OPTIONS']);
  const path = oddPath(random);
  const body = method === 'GET' ? undefined : oddBody(random, path);
  const type = random.chance(0.9)
    ? 'application/json'
    : random.pick(['text/plain', 'application/json; charset=x', '']);
  const key = random.chance(0.95) ? stage.tenant.key : oddText(random).replaceAll(/[\r\n]/g, '');
  const head = [
    `${method} ${path} HTTP/1.1`,
    'host: api',
    `authorization: Bearer ${key}`,
    ...(body === undefined ? [] : [`content-type: ${type}`, `content-length: ${body.length}`]),
    ...(random.chance(0.3) ? [random.pick(HEADERS)] : []),
  ];
  const bytes = Buffer.concat([
    Buffer.from(`${head.join('\r\n')}\r\n\r\n`, 'latin1'),
    body ?? Buffer.alloc(0),
  ]);
  return random.chance(0.15) ? damaged(random, bytes) : bytes;
}

it(
  '[F19] any bytes get an answer below 500 or none, and the process lives on',
  { timeout: TIMEOUT_MS },
  async () => {
    const random = seededRandom('[F19] fuzz');
    const statuses = new Map<number, number>();
    let left = SIZES.fuzzRequests;
    const lane = async (): Promise<void> => {
      while (left > 0) {
        left -= 1;
        const request = oddRequest(random);
        // What the api takes for the beginning of a longer request gets an answer once it knows that nothing more comes.
        const { answers } = await sendRaw(stage.api.url, request, { endAfterMs: 1_000 });
        for (const answer of answers) {
          statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1);
          if (answer.status < 400) continue;
          try {
            expectAnyProblem(answer);
            expect(answer.status).toBeLessThan(500);
          } catch (error) {
            throw new Error(`seed ${random.seed}, request ${JSON.stringify(request.toString('latin1'))}`, {
              cause: error,
            });
          }
        }
      }
    };
    await Promise.all(Array.from({ length: LANES }, lane));
    // Most got an answer, good ones among them, so that the fuzz reached further than the door.
    const answered = [...statuses.values()].reduce((sum, count) => sum + count, 0);
    expect(answered).toBeGreaterThan(SIZES.fuzzRequests * 0.9);
    for (const status of [200, 201, 400, 404, 422])
      expect([status, statuses.get(status) ?? 0]).not.toEqual([status, 0]);
    expectAlive(stage.api);
    expect(stage.api.logs().filter(({ event: name }) => name === 'request.failed')).toEqual([]);
    expect(await stage.client.get('/readyz')).toMatchObject({ status: 200 });
    expect(await stage.client.publish('a.b', {})).toMatchObject({ status: 201 });
  },
);
