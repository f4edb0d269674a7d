import { beforeAll, expect, it } from 'vitest';

import { ApiStage, type CreatedEndpoint } from '../support/api-stage.js';
import { bodyValidator, faultsOf } from '../support/check-described.js';
import { expectAnyProblem } from '../support/expect-problem.js';
import { expectAlive } from '../support/expect-terminal.js';
import {
  DOCUMENT,
  type DocumentOperation,
  operationAt,
  operationOf,
  OPERATIONS,
} from '../support/openapi-document.js';
import { type RawAnswer, sendRaw } from '../support/raw-http.js';
import { fittingValue, type ValueSources } from '../support/schema-values.js';
import { type SeededRandom, seededRandom } from '../support/seeded-random.js';
import { SIZES } from '../support/sizes.js';

const LANES = 16;
const TIMEOUT_MS = 60_000 + SIZES.fuzzRequests * 15;

interface Accepted {
  readonly id: string;
  readonly deliveries: readonly { readonly id: string }[];
}

const OPERATOR_KEY = 'operator-key-of-the-tests-0123456789';
const stage = new ApiStage({ env: { WAYBILL_OPERATOR_KEY: OPERATOR_KEY } });
let endpoint: CreatedEndpoint;
let event: Accepted;
/** A key, a secret and another tenant: theirs may be changed, and ended, without harm to the rest. */
let others: readonly string[];

beforeAll(async () => {
  endpoint = await stage.addEndpoint();
  event = (await stage.client.publish<Accepted>('a.b', { n: 1 }, { idempotencyKey: 'known' })).body;
  const { client } = stage;
  const key = await client.post<{ id: string }>('/v1/keys', { name: 'known', scopes: ['events:read'] });
  const secret = await client.post<{ id: string }>(`/v1/endpoints/${endpoint.id}/secrets`);
  const operator = stage.clientOf(stage.api, OPERATOR_KEY);
  const tenant = await operator.post<{ id: string }>('/v1/tenants', { name: 'known' });
  others = [key, secret, tenant].map(({ body }) => body.id);
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
      return random.pick([event.id, endpoint.id, event.deliveries[0]!.id, ...others]);
    case 7:
      return Array.from({ length: random.below(4) }, () => oddValue(random, depth + 1));
    default:
      return Object.fromEntries(
        Array.from({ length: random.below(4) }, () => [fieldName(random), oddValue(random, depth + 1)]),
      );
  }
}

/** Every field that some schema has, and names that are none. */
const FIELDS: readonly string[] = [
  ...new Set(
    Object.values(DOCUMENT.components.schemas).flatMap(({ properties }) => Object.keys(properties ?? {})),
  ),
  'consumer',
  '__proto__',
  'constructor',
];

function fieldName(random: SeededRandom): string {
  return random.chance(0.8) ? random.pick(FIELDS) : oddText(random);
}

/** Known and well-formed texts. The subscriptions among them match no type that is sent here. */
const sources = (): ValueSources => ({
  texts: [
    event.id,
    endpoint.id,
    event.deliveries[0]!.id,
    ...others,
    `ep_${'f'.repeat(32)}`,
    stage.receiver.url,
    'a.b',
    'c',
    'never.*',
    'known',
    'é',
    `whsec_${'QUJD'.repeat(8)}`,
  ],
  anything: (random) => oddValue(random),
});

const WITH_BODY = OPERATIONS.filter(({ body }) => body !== null);

/** A body that fits its operation, from the document's example or its schema, and then often a little less. */
function oddBody(random: SeededRandom, operation: DocumentOperation | null): Buffer | undefined {
  if (random.chance(0.1)) return undefined;
  if (random.chance(0.1)) return random.bytes(random.below(200));
  const own = operation?.body != null && random.chance(0.8);
  const { schema, example } = (own ? operation : random.pick(WITH_BODY)).body!;
  const good = random.chance(0.3) ? example : fittingValue(schema, random, sources());
  const base = { ...(good as Record<string, unknown>) };
  if (random.chance(0.6))
    for (let change = 1 + random.below(2); change > 0; change -= 1)
      base[fieldName(random)] = oddValue(random);
  const bytes = Buffer.from(JSON.stringify(random.chance(0.9) ? base : oddValue(random)));
  return random.chance(0.25) ? damaged(random, bytes) : bytes;
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

/** Publishing is half of what is asked of the api, and so of what is asked here; the reference is large, and rare. */
function oddOperation(random: SeededRandom): DocumentOperation {
  if (random.chance(0.2)) return operationOf(random.pick(['publishEvent', 'publishEvent', 'publishBatch']));
  return random.pick(
    OPERATIONS.filter(({ scope, isOperators }) => scope !== null || isOperators || random.chance(0.2)),
  );
}

function oddTarget(random: SeededRandom, { path, parameters }: DocumentOperation): string {
  const oddId = (): string => encodeURIComponent(wellFormed(oddText(random)));
  const filled = path.replaceAll(/\{(\w+)\}/g, (_, name) => {
    const { schema } = parameters.find((each) => each.in === 'path' && each.name === name)!;
    return random.chance(0.6) ? String(fittingValue(schema, random, sources())) : oddId();
  });
  const target = random.chance(0.95) ? filled : random.pick([`/v1/${oddId()}`, `/${oddId()}`, `${filled}/`]);
  const known = parameters.filter((each) => each.in === 'query');
  const query = Array.from({ length: random.chance(0.4) ? 1 + random.below(3) : 0 }, () => {
    const parameter = random.chance(0.9) && known.length > 0 ? random.pick(known) : null;
    const name = parameter?.name ?? wellFormed(oddText(random));
    const value =
      parameter !== null && random.chance(0.6)
        ? String(fittingValue(parameter.schema, random, sources()))
        : random.pick([oddText(random), '10', 'dead', event.id, 'WyJldmVudHMiXQ']);
    return `${encodeURIComponent(name)}=${encodeURIComponent(wellFormed(value))}`;
  });
  return query.length === 0 ? target : `${target}?${query.join('&')}`;
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
  'if-none-match: *',
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
  const operation = oddOperation(random);
  const method = random.chance(0.85)
    ? operation.method.toUpperCase()
    : random.pick(['GET', 'POST', 'PATCH', 'DELETE', 'PUT', 'OPTIONS']);
  const path = oddTarget(random, operation);
  const body = method === 'GET' ? undefined : oddBody(random, operation);
  const type = random.chance(0.9)
    ? 'application/json'
    : random.pick(['text/plain', 'application/json; charset=x', '']);
  const good = operation.isOperators ? OPERATOR_KEY : stage.tenant.key;
  const key = random.chance(0.95) ? good : oddText(random).replaceAll(/[\r\n]/g, '');
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

/**
 * The request line as the server reads it, by which an answer is looked up in the document. A damaged one without a
 * version is HTTP/0.9 to it.
 */
const REQUEST_LINE = /^(?:\r?\n)*([A-Z]+) +(\S+)(?: +HTTP\/\d\.\d)? *\r?\n/;

/** Row 89's envelope below 500, and nothing in the answer that the document does not say of its operation. */
function expectDescribed(request: Buffer, answer: RawAnswer): void {
  const [, method = '', target = ''] = REQUEST_LINE.exec(request.toString('latin1')) ?? [];
  expect(faultsOf(method, target, answer)).toEqual([]);
  expect(answer.status).toBeLessThan(500);
  if (answer.status >= 400) expectAnyProblem(answer);
  else expect(takenFaults(request, operationAt(method, target), answer.status)).toEqual([]);
}

/** What was taken must be described: of a good body, where it is not what the document says. */
function takenFaults(request: Buffer, operation: DocumentOperation | null, status: number): unknown[] {
  // Of a batch that is taken item by item, what is not described is refused by itself.
  const isMixed = operation?.id === 'publishBatch' && status === 200;
  if (operation?.body == null || isMixed) return [];
  const head = request.indexOf('\r\n\r\n');
  const body = request.subarray(head + 4);
  const length = /^content-length: (\d+)\r?$/m.exec(request.toString('latin1', 0, head))?.[1];
  // A damaged request has its end elsewhere.
  if (Number(length) !== body.length) return [];
  const validate = bodyValidator(operation);
  return validate(JSON.parse(body.toString())) ? [] : validate.errors!;
}

it(
  '[F19] any bytes get an answer below 500 that the document describes, or none, and the process lives on',
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
          try {
            expectDescribed(request, answer);
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
