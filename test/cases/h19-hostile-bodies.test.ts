import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';

import { beforeAll, describe, expect, it } from 'vitest';

import { ApiStage } from '../support/api-stage.js';
import { declaredRoutes } from '../support/declared-routes.js';
import { expectAnyProblem } from '../support/expect-problem.js';
import { expectAlive } from '../support/expect-terminal.js';
import { sendRaw } from '../support/raw-http.js';
import { readGauge } from '../support/read-gauge.js';
import { tenantRows } from '../support/row-counts.js';
import { withEachText, WRITING_ROUTES, type WritingScene } from '../support/writing-routes.js';

/** 200 ms and 100 ms in the case, on a machine of its own; here others compute beside it. */
const ANSWER_MS = 2_000;
const MIB = 1_048_576;

const OPERATOR_KEY = 'operator-key-of-the-tests-0123456789';
const stage = new ApiStage({ env: { WAYBILL_OPERATOR_KEY: OPERATOR_KEY } });
let scene: WritingScene;

beforeAll(async () => {
  const endpoint = await stage.addEndpoint({ event_types: ['a.b'] });
  const quiet = await stage.addEndpoint({ event_types: ['never.sent'] });
  const { body } = await stage.client.publish<{ id: string; deliveries: { id: string }[] }>('a.b', {});
  const input = { name: 'known', scopes: ['events:read'] };
  const key = await stage.client.post<{ id: string }>('/v1/keys', input);
  const operator = stage.clientOf(stage.api, OPERATOR_KEY);
  const tenant = await operator.post<{ id: string }>('/v1/tenants', { name: 'known' });
  const consumer = await stage.client.post<{ id: string }>('/v1/consumers', { uid: 'kept' });
  scene = {
    consumerId: consumer.body.id,
    stage,
    endpoint,
    quiet,
    eventId: body.id,
    deliveryId: body.deliveries[0]!.id,
    keyId: key.body.id,
    otherTenantId: tenant.body.id,
  };
});

it('[H19] tries every route that takes a body', () => {
  const declared = declaredRoutes().filter(({ method }) => !['GET', 'DELETE'].includes(method));
  const ahead = ['POST /v1/events', 'POST /v1/events/batch'];
  expect([...declared.map(({ name }) => name), ...ahead].toSorted()).toEqual(
    Object.keys(WRITING_ROUTES).toSorted(),
  );
});

const wide = (keys: number): string => `{${Array.from({ length: keys }, (_, n) => `"k${n}":0`).join()}}`;
const ZEROS = Buffer.alloc(50_000_000);

/** Bodies that no route takes, by what is wrong with them, with the headers that announce them. */
const BODIES: [what: string, body: Buffer | string, headers?: readonly string[]][] = [
  ['50 MB of zeros in gzip', gzipSync(ZEROS), ['content-encoding: gzip']],
  ['50 MB of zeros in deflate', deflateSync(ZEROS), ['content-encoding: deflate']],
  ['50 MB of zeros in brotli', brotliCompressSync(ZEROS), ['content-encoding: br']],
  ['gzip in gzip', gzipSync(gzipSync(ZEROS)), ['content-encoding: gzip, gzip']],
  ['a coding nobody knows', '{}', ['content-encoding: zstd-of-tomorrow']],
  ['gzip that does not say so', gzipSync('{}')],
  ['a length that is too short', '{"a":"bcdefgh"}', ['content-length: 5']],
  ['a length that is too long', '{}', ['content-length: 50']],
  ['a length beyond all limits', '{}', ['content-length: 99999999999999']],
  ['arrays 100,000 deep', '['.repeat(100_000)],
  ['arrays 60,000 deep', '['.repeat(60_000)],
  ['objects 5,000 deep', '{"a":'.repeat(5_000)],
  ['a field 200 levels deep', `{"url":${'['.repeat(200)}${']'.repeat(200)}}`],
  ['200,000 keys', wide(200_000)],
  ['6,000 keys', wide(6_000)],
  ['a field named __proto__', '{"__proto__":{"admin":true}}'],
  ['a field named constructor', '{"constructor":{"prototype":{}}}'],
  ['a field named by NUL', '{"\\u0000":1}'],
  ['a field named by half a character', '{"\\ud800":1}'],
  ['a field that is given twice', '{"a":1,"a":2}'],
  ['no UTF-8', Buffer.from('{"a":"\xff"}', 'latin1')],
  ['a bare NUL', '{"a":"\u0000"}'],
  ['half a document', '{"a":'],
  ['a list', '[]'],
  ['null', 'null'],
];

describe.each(Object.entries(WRITING_ROUTES))('[H19] %s', (name, route) => {
  const method = name.split(' ')[0]!;

  async function send(body: Buffer | string, headers: readonly string[] = []) {
    const bytes = Buffer.from(body);
    const announced = headers.some((line) => line.startsWith('content-length'));
    const head = [
      `${method} ${route.path(scene)} HTTP/1.1`,
      'host: api',
      `authorization: Bearer ${route.isOperators === true ? OPERATOR_KEY : stage.tenant.key}`,
      'content-type: application/json',
      'connection: close',
      ...(announced ? [] : [`content-length: ${bytes.length}`]),
      ...headers,
    ].join('\r\n');
    // A client that has sent less than it announced gives up at last: waiting for it is the request timeout's matter.
    const options = announced ? { endAfterMs: 500 } : {};
    const { answers } = await sendRaw(
      stage.api.url,
      Buffer.concat([Buffer.from(`${head}\r\n\r\n`), bytes]),
      options,
    );
    return answers[0];
  }

  it('refuses hostile bodies at once, stores nothing, and goes on answering', async () => {
    const before = await tenantRows(stage.pool, stage.tenant.tenantId);
    for (const [what, body, headers] of BODIES) {
      const startedAt = performance.now();
      const [answer, healthMs] = await Promise.all([send(body, headers), probe()]);
      const answerMs = performance.now() - startedAt;
      expect(answer, what).toBeDefined();
      const { status } = expectAnyProblem(answer!);
      expect([400, 413, 415, 422], what).toContain(status);
      expect(Math.max(answerMs, healthMs), what).toBeLessThan(ANSWER_MS);
    }
    expect(await tenantRows(stage.pool, stage.tenant.tenantId)).toEqual(before);
    expectAlive(stage.api);
  });

  it('unpacks none of twelve bombs that come at once', async () => {
    const rss = () => readGauge(stage.api, 'waybill_process_resident_memory_bytes');
    const before = await rss();
    const bomb = gzipSync(ZEROS);
    const answers = await Promise.all(
      Array.from({ length: 12 }, () => send(bomb, ['content-encoding: gzip'])),
    );
    expect(answers.map((answer) => answer?.status)).toEqual(answers.map(() => 415));
    // Unpacked they are 600 MB.
    expect((await rss()) - before).toBeLessThan(100 * MIB);
  });

  it('refuses NUL, half a character and an object in each of its texts, and stores nothing', async () => {
    const before = await tenantRows(stage.pool, stage.tenant.tenantId);
    const good = route.body(scene);
    const changes: ((text: string) => unknown)[] = [
      (text) => `${text}\u0000`,
      (text) => `\u0000${text}`,
      (text) => `${text}\ud800`,
      (text) => `\udc00${text}`,
      () => '\u0000',
      () => JSON.parse('{"__proto__":{"a":1}}') as unknown,
      () => ({ constructor: 1 }),
      () => ({ toString: 'x' }),
    ];
    let tried = 0;
    for (const change of changes) {
      for (const { at, body } of withEachText(good, change)) {
        tried += 1;
        const { status } = expectAnyProblem((await send(JSON.stringify(body)))!);
        expect([400, 422], `${at}: ${JSON.stringify(body)}`).toContain(status);
      }
    }
    expect(tried > 0).toBe(good !== null);
    expect(await tenantRows(stage.pool, stage.tenant.tenantId)).toEqual(before);
  });

  it('takes the good body of this table', async () => {
    const good = route.body(scene);
    const { status } = (await send(good === null ? '' : JSON.stringify(good)))!;
    // Of a delivery, its replay is refused as long as it is not cancelled; whatever it is, the body is not at fault.
    expect([200, 201, 202, 409]).toContain(status);
  });
});

/** How long a health probe takes, in milliseconds. */
async function probe(): Promise<number> {
  const startedAt = performance.now();
  const response = await fetch(new URL('/healthz', stage.api.url));
  await response.arrayBuffer();
  expect(response.status).toBe(200);
  return performance.now() - startedAt;
}
