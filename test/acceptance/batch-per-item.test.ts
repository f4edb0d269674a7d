import { randomUUID } from 'node:crypto';

import { beforeAll, describe, expect, it } from 'vitest';

import type { ApiResponse } from '../support/api-client.js';
import { ApiStage } from '../support/api-stage.js';
import { expectProblem } from '../support/expect-problem.js';
import { rowCounts } from '../support/row-counts.js';

interface Item {
  readonly index: number;
  readonly status: 'accepted' | 'repeated' | 'refused';
  readonly event?: { readonly id: string; readonly deliveries: readonly object[] };
  readonly problem?: { readonly code: string; readonly status: number; readonly details?: readonly object[] };
}

const stage = new ApiStage();

beforeAll(async () => {
  await stage.addEndpoint();
});

function post(
  events: readonly unknown[] | string,
  mode: unknown = 'per_item',
): Promise<ApiResponse<{ data: Item[] }>> {
  const list = typeof events === 'string' ? events : JSON.stringify(events);
  return stage.client.post('/v1/events/batch', `{"events":${list},"mode":${JSON.stringify(mode)}}`);
}

const event = (amount: number, key?: string) => ({
  event_type: 'order.paid',
  payload: { amount },
  ...(key === undefined ? {} : { idempotency_key: key }),
});

/** Runs something and gives how many events, deliveries, queue rows and keys it added. */
async function added<Result>(work: () => Promise<Result>): Promise<[Result, number[]]> {
  const before = await rowCounts(stage.pool);
  const result = await work();
  const after = await rowCounts(stage.pool);
  const tables = ['events', 'deliveries', 'delivery_queue', 'idempotency_keys'] as const;
  return [result, tables.map((table) => after[table] - before[table])];
}

const verdicts = ({ body }: ApiResponse<{ data: Item[] }>) =>
  body.data.map(({ status, problem }) => problem?.code ?? status);

describe('a batch taken item by item', () => {
  it('stores every good event in its place, whatever the others are', async () => {
    const used = randomUUID();
    const first = await post([event(1, used)]);
    const twice = randomUUID();
    const items = [
      JSON.stringify(event(1)),
      'null',
      '{"event_type":"no good","payload":1}',
      '{"event_type":"a"}',
      '{"event_type":"a","payload":1,"payload":2}',
      `{"event_type":"a","payload":{${'"k":1,'.repeat(10_000)}"k":1}}`,
      `{"event_type":"a","payload":"${'x'.repeat(262_144)}"}`,
      '{"event_type":"a","payload":1,"extra":1}',
      '{"event_type":"a","payload":1,"idempotency_key":"a b"}',
      JSON.stringify(event(2, used)),
      JSON.stringify(event(1, used)),
      JSON.stringify(event(3, twice)),
      JSON.stringify(event(3, twice)),
      JSON.stringify(event(4, twice)),
      '{"event_type":"a","payload":1,"metadata":{"a":1}}',
      JSON.stringify(event(5)),
    ];
    const [answer, counts] = await added(() => post(`[${items.join()}]`));
    expect(answer.status).toBe(200);
    expect(verdicts(answer)).toEqual([
      'accepted',
      'validation_failed',
      'invalid_event_type',
      'validation_failed',
      'duplicate_field',
      'json_too_many_keys',
      'event_too_large',
      'unknown_field',
      'invalid_idempotency_key',
      'idempotency_conflict',
      'repeated',
      'accepted',
      'repeated',
      'idempotency_conflict',
      'validation_failed',
      'accepted',
    ]);
    const { data } = answer.body;
    expect(data.map(({ index }) => index)).toEqual(items.map((_, index) => index));
    expect(data[9]!.problem).toMatchObject({
      status: 409,
      details: [{ field: 'events[9].idempotency_key', reason: 'conflict' }],
    });
    expect(data[3]!.problem?.details).toEqual([{ field: 'events[3].payload', reason: 'missing' }]);
    expect(data[10]!.event!.id).toBe(first.body.data[0]!.event!.id);
    expect(data[12]!.event!.id).toBe(data[11]!.event!.id);
    expect(data[15]!.event!.deliveries).toHaveLength(1);
    expect([answer.headers['idempotency-replayed'], counts]).toEqual([undefined, [3, 3, 3, 1]]);
  });

  it('stores its good events in one commit', async () => {
    const commit = stage.proxy.on(/^commit$/i, { moment: 'before', action: 'cut' });
    const [answer, counts] = await added(() => post([event(1), {}, event(2)]));
    expectProblem(answer, 503, 'database_unavailable');
    expect([commit.hits, counts]).toEqual([1, [0, 0, 0, 0]]);
  });

  it('says that all were stored before, when all were', async () => {
    const events = [event(1, randomUUID()), event(2, randomUUID())];
    const first = await post(events);
    const [again, counts] = await added(() => post(events.toReversed()));
    expect(verdicts(again)).toEqual(['repeated', 'repeated']);
    expect(again.body.data.map((item) => item.event!.id)).toEqual(
      first.body.data.map((item) => item.event!.id).toReversed(),
    );
    expect([again.headers['idempotency-replayed'], counts]).toEqual(['true', [0, 0, 0, 0]]);
  });

  it('answers 200 also when not one of 1,000 is good, and takes no 1,001', async () => {
    const bad = Array.from({ length: 1_000 }, () => ({ event_type: 'no good', payload: 1 }));
    const [answer, counts] = await added(() => post(bad));
    expect(answer.status).toBe(200);
    expect(new Set(verdicts(answer))).toEqual(new Set(['invalid_event_type']));
    expect([answer.body.data.length, counts]).toEqual([1_000, [0, 0, 0, 0]]);
    expectProblem(await post([...bad, event(1)]), 422, 'too_many_events');
  });

  it('refuses what is wrong with the whole of it, as any batch', async () => {
    const [, counts] = await added(async () => {
      for (const mode of ['both', '', 'PER_ITEM', 1, true, {}, ['per_item']]) {
        const { details } = expectProblem(await post([event(1)], mode), 422, 'validation_failed');
        expect(details).toEqual([{ field: 'mode', reason: 'invalid' }]);
      }
      expectProblem(await post([]), 422, 'validation_failed');
      expectProblem(await post('null'), 422, 'validation_failed');
      expectProblem(await post('[{]'), 400, 'invalid_json');
      expectProblem(await post(`[${'['.repeat(200)}${']'.repeat(200)}]`), 400, 'json_too_deep');
    });
    expect(counts).toEqual([0, 0, 0, 0]);
  });

  it('is asked for: null, nothing and all_or_nothing store all or none, and flag the repeats', async () => {
    const key = randomUUID();
    const plain = await stage.client.post<{ data: { status: string }[] }>('/v1/events/batch', {
      events: [event(1, key)],
    });
    expect(plain).toMatchObject({ status: 201, body: { data: [{ status: 'accepted' }] } });
    for (const mode of [null, 'all_or_nothing']) {
      const [mixed] = await added(() => post([event(1, key), event(2)], mode));
      expect([mixed.status, verdicts(mixed)]).toEqual([201, ['repeated', 'accepted']]);
      const [refused, counts] = await added(() => post([event(3), {}], mode));
      expectProblem(refused, 422, 'validation_failed');
      expect(counts).toEqual([0, 0, 0, 0]);
    }
  });
});

it('the ids of events and deliveries are those that the functions of the schema make', async () => {
  await stage.client.publish('order.paid', {});
  const { rows } = await stage.pool.query<{ all: number; events: number; deliveries: number }>(`
    select count(*)::integer as all,
      count(*) filter (where e.id = waybill.event_id(e.created_at, e.id))::integer as events,
      count(*) filter (where d.id = waybill.derived_id(e.id, d.endpoint_id))::integer as deliveries
    from waybill.events e
    join waybill.deliveries d on d.tenant_id = e.tenant_id and d.event_id = e.id
  `);
  const { all, events, deliveries } = rows[0]!;
  expect(all).toBeGreaterThan(1);
  expect([events, deliveries]).toEqual([all, all]);
});
