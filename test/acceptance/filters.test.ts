import { readFilter } from '#endpoints';
import { afterAll, beforeAll, expect, it } from 'vitest';

import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { filterHolds, type Model, render } from '../support/filter-oracle.js';
import { type SeededRandom, seededRandom } from '../support/seeded-random.js';
import { SIZES } from '../support/sizes.js';

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

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
  const { rows } = await database.pool.query<{ holds: boolean | null }>(
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
    const { rows } = await database.pool.query<{ read: boolean }>(
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
