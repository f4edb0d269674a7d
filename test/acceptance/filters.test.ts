import { readFilter } from '#endpoints';
import { describe, expect, it } from 'vitest';

import { ApiStage } from '../support/api-stage.js';
import { expectProblem } from '../support/expect-problem.js';
import { filterHolds, type Model, render } from '../support/filter-oracle.js';
import { type SeededRandom, seededRandom } from '../support/seeded-random.js';
import { SIZES } from '../support/sizes.js';
import { createTenantWithKey } from '../support/tenant.js';

const stage = new ApiStage();

const NAMES = ['a', 'a', 'a', 'b', 'b', 'c', '0', 'é"\\', '__proto__', 'constructor', '$a'];
const TEXTS = ['', 'a', 'ab', 'b', 'é', '\uFFFF', '😀', '"', '\\', 'a\nb', 'true', '1'];
const NUMBERS = [
  '0',
  '-0',
  '1',
  '1.0',
  '1.10',
  '-5',
  '0.1',
  '1e2',
  '100',
  '1E-7',
  '12345678901234567890',
  '99999999999999999.5',
];

function randomPayload(random: SeededRandom, depth = 0): Model {
  const kind = depth === 0 ? 6 : random.below(depth > 3 ? 4 : 7);
  if (kind === 0) return { kind: 'null' };
  if (kind === 1) return { kind: 'boolean', value: random.chance(0.5) };
  if (kind === 2) return { kind: 'string', value: random.chance(0.5) ? 'a' : random.pick(TEXTS) };
  if (kind === 3) return { kind: 'number', text: random.chance(0.5) ? '1' : random.pick(NUMBERS) };
  const length = random.below(4);
  if (kind === 4)
    return { kind: 'array', items: Array.from({ length }, () => randomPayload(random, depth + 1)) };
  return {
    kind: 'object',
    entries: Array.from(
      { length: length + 2 },
      () => [random.pick(NAMES), randomPayload(random, depth + 1)] as const,
    ),
  };
}

/** Mostly one of a few, so that what is asked for is often there. */
function randomValue(random: SeededRandom): string | number | boolean | null {
  if (random.chance(0.7)) return random.pick(['a', 'a', 1, 1, true, null]);
  return random.pick([...TEXTS, 0, 1.1, -5, 0.1, 100, 1e-7, 9_007_199_254_740_991, false]);
}

function randomConditions(random: SeededRandom): unknown {
  const ordered = (): string | number =>
    random.chance(0.5) ? random.pick(TEXTS) : random.pick([0, 1, -5, 0.1, 100]);
  const values = (): unknown[] => Array.from({ length: 1 + random.below(3) }, () => randomValue(random));
  const makers: [string, () => unknown][] = [
    ['$eq', () => randomValue(random)],
    ['$ne', () => randomValue(random)],
    ['$in', values],
    ['$nin', values],
    ['$gt', ordered],
    ['$gte', ordered],
    ['$lt', ordered],
    ['$lte', ordered],
    ['$exists', () => random.chance(0.5)],
    ['$startsWith', () => random.pick(TEXTS)],
  ];
  if (random.chance(0.3)) return randomValue(random);
  return Object.fromEntries(
    Array.from({ length: random.pick([1, 1, 2]) }, () => {
      const [operator, make] = random.pick(makers);
      return [operator, make()];
    }),
  );
}

/** Names that lead somewhere more often than not: those of the payload, and now and then any. */
function randomFilter(random: SeededRandom, depth = 0): object {
  const entries = Array.from({ length: random.pick([1, 1, 1, 2]) }, (): [string, unknown] => {
    const group = depth > 2 ? 9 : random.below(8);
    const filters = () => Array.from({ length: 1 + random.below(2) }, () => randomFilter(random, depth + 1));
    if (group === 0) return ['$and', filters()];
    if (group === 1) return ['$or', filters()];
    if (group === 2) return ['$not', randomFilter(random, depth + 1)];
    const path = Array.from({ length: 1 + random.below(random.pick([1, 1, 2, 3])) }, () =>
      random.pick(NAMES),
    ).join('.');
    return [path.startsWith('$') ? `a.${path}` : path, randomConditions(random)];
  });
  // An own property even where it is called __proto__.
  return Object.fromEntries(entries);
}

it('decides as the oracle does, whatever the filter and the payload', async () => {
  const random = seededRandom('filters');
  const cases = Array.from({ length: SIZES.filterCases }, () => ({
    filter: randomFilter(random),
    payload: randomPayload(random),
  }));
  const { rows } = await stage.pool.query<{ holds: boolean | null }>(
    `select waybill.payload_json(payload) @@ path::jsonpath as holds
     from unnest($1::bytea[], $2::text[]) with ordinality as x (payload, path, place) order by place`,
    [
      cases.map(({ payload }) => Buffer.from(render(payload))),
      cases.map(({ filter }) => readFilter(filter)!.path),
    ],
  );
  const wrong = cases.flatMap(({ filter, payload }, index) => {
    const oracle = filterHolds(filter, payload);
    return rows[index]!.holds === oracle
      ? []
      : [`${JSON.stringify(filter)} on ${render(payload)}: ${rows[index]!.holds}, not ${oracle}`];
  });
  expect(wrong.slice(0, 5)).toEqual([]);
  // Both answers must be frequent, or this shows little.
  const held = rows.filter(({ holds }) => holds).length / rows.length;
  expect(held).toBeGreaterThan(0.15);
  expect(held).toBeLessThan(0.85);
});

it('reads a payload that jsonb cannot hold as nothing, and every other one', async () => {
  const read = async (text: string | Buffer): Promise<boolean> => {
    const { rows } = await stage.pool.query<{ read: boolean }>(
      'select waybill.payload_json($1) is not null as read',
      [Buffer.from(text)],
    );
    return rows[0]!.read;
  };
  for (const text of ['{"a":"\\u0000"}', '"\\ud800"', '1e200000', '[1e-200000]', Buffer.from([0xff])])
    expect(await read(text), String(text)).toBe(false);
  for (const text of [
    'null',
    '5',
    '{"a":1,"a":2}',
    '"\\ud83d\\ude00"',
    '12345678901234567890',
    `${'['.repeat(100)}${']'.repeat(100)}`,
  ])
    expect(await read(text), text).toBe(true);
});

interface Accepted {
  readonly id: string;
  readonly deliveries: readonly { readonly endpoint_id: string }[];
}

async function reached(eventType: string, payload: string): Promise<string[]> {
  const answer = await stage.client.publish<Accepted>(eventType, payload);
  expect(answer.status).toBe(201);
  return answer.body.deliveries.map(({ endpoint_id }) => endpoint_id).toSorted();
}

describe('an endpoint with a filter', () => {
  it('gets what its filter lets through, of what it is subscribed to, and so does the match route say', async () => {
    const [large, euro, all] = await Promise.all([
      stage.addEndpoint({ event_types: ['filtered.order'], filter: { total: { $gte: 100 } } }),
      stage.addEndpoint({
        event_types: ['filtered.*'],
        filter: { $or: [{ currency: 'EUR' }, { vip: true }] },
      }),
      stage.addEndpoint({ event_types: ['filtered.order'] }),
    ]);
    const ids = (...endpoints: { id: string }[]): string[] => endpoints.map(({ id }) => id).toSorted();
    const cases: [string, string[]][] = [
      ['{"total": 100.0, "currency": "USD"}', ids(large, all)],
      ['{"total": 99.99, "currency": "EUR"}', ids(euro, all)],
      ['{"total": 1e3, "vip": true}', ids(large, euro, all)],
      ['{"total": "100"}', ids(all)],
      ['[]', ids(all)],
      ['null', ids(all)],
    ];
    for (const [payload, expected] of cases) {
      expect(await reached('filtered.order', payload), payload).toEqual(expected);
      const { status, body } = await stage.client.post<{
        endpoints: { endpoint_id: string; verdict: string }[];
      }>('/v1/events/match', `{"event_type":"filtered.order","payload":${payload}}`);
      expect(status).toBe(200);
      expect(body).toMatchObject({ matching: expected.length, passed_over: 3 - expected.length });
      const matching = body.endpoints.filter(({ verdict }) => verdict === 'matches');
      expect(matching.map(({ endpoint_id }) => endpoint_id).toSorted(), payload).toEqual(expected);
    }
  });

  it('gets no payload that the database cannot hold as JSON; others get it byte for byte, and the event says so', async () => {
    const [filtered, plain] = await Promise.all([
      stage.addEndpoint({ event_types: ['odd.payload'], filter: { a: { $exists: true } } }),
      stage.addEndpoint({ event_types: ['odd.payload'] }),
    ]);
    const payload = '{"a":"\\u0000", "n":1.10}';
    const published = await stage.client.publish<Accepted>('odd.payload', payload);
    expect(published.body.deliveries).toMatchObject([{ endpoint_id: plain.id }]);
    const shown = await stage.client.get(`/v1/events/${published.body.id}`);
    expect(shown.body).toMatchObject({ unfilterable: true, target_count: 1 });
    expect(shown.text).toContain(payload);
    const asked = await stage.client.post(
      '/v1/events/match',
      `{"event_type":"odd.payload","payload":${payload}}`,
    );
    expect(asked.body).toMatchObject({
      endpoints: [
        { endpoint_id: plain.id, verdict: 'matches' },
        { endpoint_id: filtered.id, verdict: 'unfilterable' },
      ],
    });
    // Nobody with a filter was in reach: nothing was asked, and nothing is said.
    const other = await stage.client.publish<Accepted>('odd.other', payload);
    expect((await stage.client.get(`/v1/events/${other.body.id}`)).body).toMatchObject({
      unfilterable: false,
    });
  });

  it('is changed and taken away by PATCH, as a new version, and shown as it was given', async () => {
    const filter = { 'a.b': { $in: ['x', 1, null] }, $not: { c: true } };
    const endpoint = await stage.addEndpoint({ event_types: ['patched.filter'], filter });
    const path = `/v1/endpoints/${endpoint.id}`;
    expect((await stage.client.get(path)).body).toMatchObject({ filter, version: 1 });
    expect(await reached('patched.filter', '{"a":{"b":2}}')).toEqual([]);
    expect((await stage.client.patch(path, { filter: { 'a.b': 2 } })).body).toMatchObject({ version: 2 });
    expect(await reached('patched.filter', '{"a":{"b":2}}')).toEqual([endpoint.id]);
    // The same again changes nothing.
    expect((await stage.client.patch(path, { filter: { 'a.b': 2 } })).body).toMatchObject({ version: 2 });
    expect((await stage.client.patch(path, { description: 'kept' })).body).toMatchObject({
      filter: { 'a.b': 2 },
      version: 3,
    });
    expect((await stage.client.patch(path, { filter: null })).body).toMatchObject({
      filter: null,
      version: 4,
    });
    expect(await reached('patched.filter', '{}')).toEqual([endpoint.id]);
  });

  it.each<[string, unknown]>([
    ['an unknown operator', { a: { $regex: '^a' } }],
    ['a list', []],
    ['a text', 'a = 1'],
    ['nothing in it', {}],
    ['NUL', { a: 'x\u0000' }],
    ['__proto__ in a group', JSON.parse('{"$and":[{"__proto__":{"$x":1}}]}')],
  ])('is refused with %s, and nothing is stored', async (_, filter) => {
    const before = await stage.pool.query('select count(*) from waybill.endpoints');
    const refused = await stage.client.post('/v1/endpoints', { url: `${stage.receiver.url}/x`, filter });
    expect(refused.status).toBe(422);
    expect(['validation_failed', 'unknown_field']).toContain((refused.body as { code: string }).code);
    expect((await stage.pool.query('select count(*) from waybill.endpoints')).rows).toEqual(before.rows);
  });
});

it('the match route stores nothing and refuses what publishing refuses', async () => {
  const ask = (body: string) => stage.client.post('/v1/events/match', body);
  const before = await stage.pool.query('select count(*) from waybill.events');
  expect((await ask('{"event_type":"nobody.wants.this","payload":1}')).status).toBe(200);
  expectProblem(await ask('{"event_type":"a b","payload":1}'), 422, 'invalid_event_type');
  expectProblem(await ask('{"event_type":"a"}'), 422, 'validation_failed');
  expectProblem(await ask('{"event_type":"a","payload":1,"x":1}'), 422, 'unknown_field');
  expectProblem(await ask('{'), 400, 'invalid_json');
  expect((await stage.pool.query('select count(*) from waybill.events')).rows).toEqual(before.rows);
});

it('the events of a tenant with filters share no statement with those of others', async () => {
  const other = await createTenantWithKey(stage.database.url);
  const stranger = stage.clientOf(stage.api, other.key);
  // Never true, and every item of the payload is compared with all of its values.
  const values = Array.from({ length: 100 }, (_, n) => `never ${n}`);
  await stage.addEndpoint({ event_types: ['heavy.event'], filter: { items: { $in: values } } });
  const heavy = JSON.stringify({ items: Array.from({ length: 5_000 }, (_, n) => `item ${n}`) });
  const answers = await Promise.all([
    stage.client.publish('heavy.event', heavy),
    stage.client.publish('heavy.event', heavy, { idempotencyKey: 'heavy' }),
    stranger.publish('light.event', '{}'),
  ]);
  expect(answers.map(({ status }) => status)).toEqual([201, 201, 201]);
  const { rows } = await stage.pool.query<{ lane: string }>(
    `select distinct application_name as lane from pg_stat_activity
     where datname = current_database() and query like '%with clock as materialized%'
       and application_name like 'waybill-api-%' order by 1`,
  );
  expect(rows.map(({ lane }) => lane)).toEqual(['waybill-api-accept', 'waybill-api-filtered']);
});
