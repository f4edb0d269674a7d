import { randomUUID } from 'node:crypto';

import { beforeAll, describe, expect, it } from 'vitest';

import type { ApiResponse } from '../support/api-client.js';
import { ACCEPT, ApiStage, QUICK_ATTEMPTS } from '../support/api-stage.js';
import { expectProblem } from '../support/expect-problem.js';
import { expectTerminal } from '../support/expect-terminal.js';
import { sendRaw } from '../support/raw-http.js';
import { rowCounts } from '../support/row-counts.js';
import { waitFor } from '../support/wait-for.js';

interface Accepted {
  readonly id: string;
  readonly event_type: string;
  readonly created_at: string;
  readonly deliveries: readonly { readonly id: string; readonly state: string }[];
}

const stage = new ApiStage();

beforeAll(async () => {
  await stage.addEndpoint();
});

function post(
  idempotencyKey: string,
  payload: object | Buffer = { amount: 1 },
): Promise<ApiResponse<Accepted>> {
  return stage.client.publish<Accepted>('order.paid', payload, { idempotencyKey });
}

function postBatch(events: readonly object[], headers = {}): Promise<ApiResponse<{ data: Accepted[] }>> {
  return stage.client.post<{ data: Accepted[] }>('/v1/events/batch', { events }, headers);
}

const item = (key: string | null, amount: number, eventType = 'order.paid') => ({
  event_type: eventType,
  payload: { amount },
  ...(key === null ? {} : { idempotency_key: key }),
});

const wasReplayed = ({ headers }: ApiResponse<unknown>): string | undefined =>
  headers['idempotency-replayed'] as string | undefined;

/** Runs something and gives how many events, deliveries, queue rows and keys it added. */
async function added<Result>(work: () => Promise<Result>): Promise<[Result, number[]]> {
  const before = await rowCounts(stage.pool);
  const result = await work();
  const after = await rowCounts(stage.pool);
  const tables = ['events', 'deliveries', 'delivery_queue', 'idempotency_keys'] as const;
  return [result, tables.map((table) => after[table] - before[table])];
}

describe('a key that was used', () => {
  it('[row 10] with the same content gives the first id and time, flagged, and stores nothing', async () => {
    const key = randomUUID();
    const [[first, second], counts] = await added(async () => [await post(key), await post(key)]);
    expect([first.status, second.status]).toEqual([201, 201]);
    expect([wasReplayed(first), wasReplayed(second)]).toEqual([undefined, 'true']);
    expect(second.body).toEqual(first.body);
    expect(second.headers['location']).toBe(first.headers['location']);
    expect(counts).toEqual([1, 1, 1, 1]);
  });

  it('[row 10] gives the first id still when the delivery is long done', async () => {
    const key = randomUUID();
    const first = await post(key);
    const dispatcher = await stage.bootDispatcher();
    await stage.receiver.waitFor(() => stage.receiver.requestsFor(first.body.deliveries[0]!.id).length === 1);
    await expectTerminal(stage.pool, {
      receivers: [stage.receiver],
      apps: [stage.api, dispatcher],
      attemptLimit: QUICK_ATTEMPTS,
    });
    const [again, counts] = await added(() => post(key));
    expect(again).toMatchObject({
      status: 201,
      body: { id: first.body.id, created_at: first.body.created_at },
    });
    expect(again.body.deliveries).toMatchObject([{ id: first.body.deliveries[0]!.id, state: 'succeeded' }]);
    expect(counts).toEqual([0, 0, 0, 0]);
    await dispatcher.stop();
  });

  it.each<[string, string, object]>([
    ['another payload', 'order.paid', { payload: { secret_of_first: 2 } }],
    ['other white space', 'order.paid', { payload: 'spaced' }],
    ['another type', 'order.refunded', {}],
    ['metadata', 'order.paid', { metadata: { a: 'b' } }],
    ['a time', 'order.paid', { notBefore: '2026-01-01T00:00:00Z' }],
  ])('[row 11] refuses %s with 409 and does not show what is stored', async (_what, eventType, other) => {
    const key = randomUUID();
    const first = await post(key, { marker_of_the_first: 'c0ffee' });
    const stored = () =>
      stage.pool.query(
        'select e::text, k::text from waybill.events e join waybill.idempotency_keys k on k.resource_id = e.id where k.key = $1',
        [key],
      );
    const before = (await stored()).rows;
    expect(before).toHaveLength(1);
    const { payload = { marker_of_the_first: 'c0ffee' }, ...options } = other as {
      payload?: object | string;
    };
    const bytes = payload === 'spaced' ? Buffer.from('{"marker_of_the_first": "c0ffee"}') : payload;
    const [refused, counts] = await added(() =>
      stage.client.publish(eventType, bytes, { idempotencyKey: key, ...options }),
    );
    expectProblem(refused, 409, 'idempotency_conflict');
    expect(refused.text).not.toMatch(/marker_of_the_first|c0ffee/);
    expect(refused.text).not.toContain(first.body.id);
    expect(counts).toEqual([0, 0, 0, 0]);
    expect((await stored()).rows).toEqual(before);
  });
});

describe('six at once under one key', () => {
  it('[row 12] with one content: six 2xx, one id, five flagged, one row', async () => {
    const key = randomUUID();
    const [answers, counts] = await added(() => Promise.all(Array.from({ length: 6 }, () => post(key))));
    expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: 6 }, () => 201));
    expect(new Set(answers.map(({ body }) => body.id)).size).toBe(1);
    expect(answers.filter((answer) => wasReplayed(answer) === 'true')).toHaveLength(5);
    expect(counts).toEqual([1, 1, 1, 1]);
  });

  it('[row 13] with six contents: one 2xx, five 409', async () => {
    const key = randomUUID();
    const [answers, counts] = await added(() =>
      Promise.all(Array.from({ length: 6 }, (_, amount) => post(key, { amount }))),
    );
    expect(answers.map(({ status }) => status).toSorted((one, other) => one - other)).toEqual([
      201, 409, 409, 409, 409, 409,
    ]);
    for (const answer of answers.filter(({ status }) => status === 409))
      expectProblem(answer, 409, 'idempotency_conflict');
    expect(counts).toEqual([1, 1, 1, 1]);
  });
});

describe('[row 14] as a key', () => {
  const refused: [string, string | Buffer][] = [
    ['nothing', ''],
    ['256 characters', 'k'.repeat(256)],
    ['a space inside', 'a b'],
    ['a tab inside', 'a\tb'],
    ['letters beyond ASCII', 'clé'],
    ['bytes beyond ASCII', Buffer.from([0x61, 0xff, 0x62])],
    ['DEL', 'a\u007fb'],
  ];
  it.each(refused)('%s is refused, and nothing is stored', async (_what, key) => {
    const body = '{"event_type":"order.paid","payload":{}}';
    const head = [
      'POST /v1/events HTTP/1.1',
      'host: api',
      `authorization: Bearer ${stage.tenant.key}`,
      'content-type: application/json',
      `content-length: ${body.length}`,
      'idempotency-key: ',
    ].join('\r\n');
    const request = Buffer.concat([Buffer.from(head), Buffer.from(key), Buffer.from(`\r\n\r\n${body}`)]);
    const before = await rowCounts(stage.pool);
    const { answers } = await sendRaw(stage.api.url, request);
    // Node itself refuses control characters in a header, before it is anybody's key.
    const code = key.includes('\u007f')
      ? answers[0]!.status && JSON.parse(answers[0]!.text).code
      : 'invalid_idempotency_key';
    expectProblem(answers[0]!, 400, code);
    expect(['invalid_idempotency_key', 'invalid_request']).toContain(code);
    expect(await rowCounts(stage.pool)).toEqual(before);
  });

  it('two headers are refused', async () => {
    const body = '{"event_type":"order.paid","payload":{}}';
    const before = await rowCounts(stage.pool);
    const { answers } = await sendRaw(
      stage.api.url,
      `POST /v1/events HTTP/1.1\r\nhost: api\r\nauthorization: Bearer ${stage.tenant.key}\r\n` +
        `content-type: application/json\r\ncontent-length: ${body.length}\r\nidempotency-key: a\r\nIdempotency-Key: a\r\n\r\n${body}`,
    );
    expectProblem(answers[0]!, 400, 'invalid_idempotency_key');
    expect(await rowCounts(stage.pool)).toEqual(before);
  });

  it.each([
    ['one character', '~'],
    ['16 characters', 'k'.repeat(16)],
    ['255 characters', 'k'.repeat(255)],
    ['a UUID', randomUUID()],
    ['base64', Buffer.from(randomUUID()).toString('base64')],
    ['punctuation', `!"#$%&'()*+,-./:;<=>?@[\\]^_\`{|}~`],
  ])('%s passes', async (_what, key) => {
    const [[first, again], counts] = await added(async () => [await post(key), await post(key)]);
    expect(first.status).toBe(201);
    expect([again.body.id, wasReplayed(again)]).toEqual([first.body.id, 'true']);
    expect(counts).toEqual([1, 1, 1, 1]);
  });
});

describe('[row 17] a producer that lost the answer', () => {
  it('to a cut connection of ours gets the same event for its retry', async () => {
    const key = randomUUID();
    const fault = stage.proxy.on(ACCEPT, { moment: 'after', action: 'cut' });
    const [[lost, retried], counts] = await added(async () => [await post(key), await post(key)]);
    expectProblem(lost, 503, 'database_unavailable');
    expect(fault.hits).toBe(1);
    expect([retried.status, wasReplayed(retried)]).toEqual([201, 'true']);
    expect(counts).toEqual([1, 1, 1, 1]);
    const { rows } = await stage.pool.query(
      'select resource_id from waybill.idempotency_keys where key = $1',
      [key],
    );
    expect(retried.body.id).toBe(`evt_${rows[0].resource_id.replaceAll('-', '')}`);
  });

  it('to its own impatience gets the same event for its retry', async () => {
    const key = randomUUID();
    const fault = stage.proxy.on(ACCEPT, { moment: 'after', action: 'swallow' });
    const body = '{"event_type":"order.paid","payload":{"amount":1}}';
    const [retried, counts] = await added(async () => {
      const impatient = sendRaw(
        stage.api.url,
        `POST /v1/events HTTP/1.1\r\nhost: api\r\nauthorization: Bearer ${stage.tenant.key}\r\n` +
          `content-type: application/json\r\nidempotency-key: ${key}\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
        { timeoutMs: 1_000 },
      );
      await fault.hit;
      await expect(impatient).rejects.toThrow('no 1 answer(s)');
      fault.release();
      return post(key, Buffer.from('{"amount":1}'));
    });
    expect([retried.status, wasReplayed(retried)]).toEqual([201, 'true']);
    expect(counts).toEqual([1, 1, 1, 1]);
  });

  it('stores the event at the retry when the first request never reached the database', async () => {
    const key = randomUUID();
    const fault = stage.proxy.on(ACCEPT, { moment: 'before', action: 'cut' });
    const [[lost, retried], counts] = await added(async () => [await post(key), await post(key)]);
    expectProblem(lost, 503, 'database_unavailable');
    expect(fault.hits).toBe(1);
    expect([retried.status, wasReplayed(retried)]).toEqual([201, undefined]);
    expect(counts).toEqual([1, 1, 1, 1]);
  });
});

describe('a batch', () => {
  it('stores all of its events, in order, under keys of their own', async () => {
    const keys = [randomUUID(), randomUUID()];
    const events = [item(keys[0]!, 1), item(null, 2, 'order.refunded'), item(keys[1]!, 3, 'order.paid')];
    const [answer, counts] = await added(() => postBatch(events));
    expect(answer).toMatchObject({ status: 201 });
    expect(answer.body.data.map((event) => event.event_type)).toEqual(
      events.map((event) => event.event_type),
    );
    expect(answer.body.data.map(({ id }) => id)).toEqual(answer.body.data.map(({ id }) => id).toSorted());
    expect([wasReplayed(answer), counts]).toEqual([undefined, [3, 3, 3, 2]]);

    const [again, nothing] = await added(() => postBatch([events[2]!, events[0]!]));
    expect(again.body.data.map(({ id }) => id)).toEqual([answer.body.data[2]!.id, answer.body.data[0]!.id]);
    expect([wasReplayed(again), nothing]).toEqual(['true', [0, 0, 0, 0]]);

    const [mixed, one] = await added(() => postBatch([events[0]!, item(randomUUID(), 4)]));
    expect(mixed.body.data[0]!.id).toBe(answer.body.data[0]!.id);
    expect([wasReplayed(mixed), one]).toEqual([undefined, [1, 1, 1, 1]]);

    // A key is one, whichever door it comes through.
    expect((await post(keys[0]!, { amount: 1 })).body.id).toBe(answer.body.data[0]!.id);
  });

  it('with one conflict stores nothing, and names the place', async () => {
    const used = randomUUID();
    await post(used, { amount: 1 });
    const [refused, counts] = await added(() =>
      postBatch([item(randomUUID(), 1), item(null, 2), item(used, 99)]),
    );
    const { details } = expectProblem(refused, 409, 'idempotency_conflict');
    expect(details).toEqual([{ field: 'events[2].idempotency_key', reason: 'conflict' }]);
    expect(counts).toEqual([0, 0, 0, 0]);
  });

  it('with one bad event stores nothing, and names the place', async () => {
    const bad: [object, number, string, string][] = [
      [item(null, 1, 'no good'), 422, 'invalid_event_type', 'events[1].event_type'],
      [{ event_type: 'a' }, 422, 'validation_failed', 'events[1].payload'],
      [{ ...item(null, 1), extra: 1 }, 422, 'unknown_field', 'events[1].extra'],
      [item('', 1), 400, 'invalid_idempotency_key', 'events[1].idempotency_key'],
      [item('a b', 1), 400, 'invalid_idempotency_key', 'events[1].idempotency_key'],
      [item('a\u0000b', 1), 400, 'invalid_idempotency_key', 'events[1].idempotency_key'],
      [item('é', 1), 400, 'invalid_idempotency_key', 'events[1].idempotency_key'],
      [item('k'.repeat(256), 1), 400, 'invalid_idempotency_key', 'events[1].idempotency_key'],
      [{ ...item(null, 1), metadata: { a: 1 } }, 422, 'validation_failed', 'events[1].metadata'],
    ];
    for (const [event, status, code, field] of bad) {
      const [refused, counts] = await added(() => postBatch([item(randomUUID(), 1), event]));
      expect(expectProblem(refused, status, code).details?.[0]).toMatchObject({ field });
      expect(counts).toEqual([0, 0, 0, 0]);
    }
  });

  it('stores an event once that it holds twice under one key, and nothing if the two differ', async () => {
    const key = randomUUID();
    const [answer, counts] = await added(() => postBatch([item(key, 1), item(key, 1), item(null, 1)]));
    expect(answer.status).toBe(201);
    expect(answer.body.data[0]).toMatchObject({ status: 'accepted' });
    expect(answer.body.data[1]).toEqual({ ...answer.body.data[0], status: 'repeated' });
    expect(answer.body.data[2]!.id).not.toBe(answer.body.data[0]!.id);
    expect([wasReplayed(answer), counts]).toEqual([undefined, [2, 2, 2, 1]]);
    const other = randomUUID();
    const [refused, nothing] = await added(() => postBatch([item(other, 1), item(other, 2)]));
    expectProblem(refused, 409, 'idempotency_conflict');
    expect(nothing).toEqual([0, 0, 0, 0]);
  });

  it('takes no Idempotency-Key header', async () => {
    const [refused, counts] = await added(() => postBatch([item(null, 1)], { 'idempotency-key': 'x' }));
    expectProblem(refused, 400, 'invalid_idempotency_key');
    expect(counts).toEqual([0, 0, 0, 0]);
  });

  it('meets another with the same keys in another order without a deadlock', async () => {
    const keys = Array.from({ length: 50 }, () => randomUUID());
    const events = keys.map((key, amount) => item(key, amount));
    const [answers, counts] = await added(() =>
      Promise.all(Array.from({ length: 6 }, (_, turn) => postBatch(turn % 2 ? events : events.toReversed()))),
    );
    expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: 6 }, () => 201));
    expect(new Set(answers.flatMap(({ body }) => body.data.map(({ id }) => id))).size).toBe(50);
    expect(counts).toEqual([50, 50, 50, 50]);
  });

  it('holds a key only until its transaction ends: others are told to come again, then get its event', async () => {
    const key = randomUUID();
    const fault = stage.proxy.on(/^commit$/i, { moment: 'before', action: 'swallow' });
    const slow = postBatch([item(key, 1)]);
    await fault.hit;
    const meanwhile = await post(key, Buffer.from('{"amount":1}'));
    expectProblem(meanwhile, 503, 'idempotency_key_in_progress');
    const stranger = await post(randomUUID());
    expect(stranger.status).toBe(201);
    fault.release();
    const { status, body } = await slow;
    expect(status).toBe(201);
    const retried = await post(key, Buffer.from('{"amount":1}'));
    expect([retried.body.id, wasReplayed(retried)]).toEqual([body.data[0]!.id, 'true']);
  });
});

it('[I7] [F5] keeps a key that hangs, and all who wait for it, from holding up the keys of others', async () => {
  const key = randomUUID();
  const fault = stage.proxy.on(/^commit$/i, { moment: 'before', action: 'swallow' });
  const slow = postBatch([item(key, 1)]);
  await fault.hit;
  const waiting = Array.from({ length: 60 }, () => post(key));
  const strangers = await Promise.all(Array.from({ length: 10 }, () => post(randomUUID())));
  expect(strangers.map(({ status }) => status)).toEqual(Array.from({ length: 10 }, () => 201));
  for (const answer of await Promise.all(waiting)) expectProblem(answer, 503, 'idempotency_key_in_progress');
  fault.release();
  expect((await slow).status).toBe(201);
});

it('[F6] leaves no key behind when the transaction that took it was cut', async () => {
  const key = randomUUID();
  const fault = stage.proxy.on(/^commit$/i, { moment: 'before', action: 'cut' });
  const [[cut, retried], counts] = await added(async () => {
    const lost = await postBatch([item(key, 1)]);
    await waitFor(async () => (await post(key, { amount: 1 })).status === 201, {
      what: 'the retry to be taken',
    });
    return [lost, await post(key, { amount: 1 })] as const;
  });
  expectProblem(cut, 503, 'database_unavailable');
  expect(fault.hits).toBe(1);
  expect(wasReplayed(retried)).toBe('true');
  expect(counts).toEqual([1, 1, 1, 1]);
});
