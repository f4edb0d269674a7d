import { randomUUID } from 'node:crypto';

import type { PoolClient } from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { exerciseOutbox, plantTenants } from '../support/exercise-outbox.js';
import { type RecordedStatement, recordStatements } from '../support/recorded-statements.js';
import { volatileFunctionsIn, writingPart } from '../support/sql-functions.js';
import { sqlPiecesIn } from '../support/sql-pieces.js';
import { explainScans, type Reach, tenantFaults } from '../support/tenant-plan.js';
import { makeTwin, partOf, TWIN_PARTITIONS } from '../support/twin-schema.js';

/**
 * Statements that look over a whole place by their nature, by file: the tables they walk, and why. On a distributed
 * database each runs once in every place. All other tables they must reach by tenant like everybody else.
 */
const PLACE_STATEMENTS: Readonly<Record<string, { walks: readonly string[]; why: string }>> = {
  'discover-endpoints': { walks: ['delivery_queue'], why: 'asks whose work fell due' },
  'sweep-endpoints': { walks: ['delivery_queue'], why: 'asks who is owed anything' },
  'find-lapsed-claims': { walks: ['delivery_queue'], why: 'leases of dead workers lie anywhere' },
  'expire-deliveries': { walks: ['delivery_queue'], why: 'debts run out anywhere' },
  'measure-queue': { walks: ['delivery_queue', 'dead_letters'], why: 'counts all that is owed' },
  'keep-replica': { walks: ['delivery_queue'], why: 'doctor asks whether anything is owed at all' },
  'disable-failing': { walks: ['circuits'], why: 'endpoints fail anywhere' },
  'announce-events': { walks: ['announcements'], why: 'takes what waits longest, whoever it is for' },
  'purge-idempotency-keys': { walks: ['idempotency_keys'], why: 'forgets by age alone' },
};

const HOME = 0;
const OUTBOX = new URL('../../libs/outbox/', import.meta.url);

let database: TestDatabase;
let client: PoolClient;
let columnsBefore: string[];
let tenants: readonly string[];
/** Each statement of libs/outbox once, as it was sent for tenants of one part. */
let sent: readonly RecordedStatement[];

beforeAll(async () => {
  database = await createTestDatabase();
  columnsBefore = await readColumns();
  await makeTwin(database.pool);
  const byPart = await chooseTenants();
  tenants = byPart.get(HOME)!;
  await plantTenants(
    database.pool,
    [...byPart.values()].flat().filter((id) => !tenants.includes(id)),
  );
  const endpoints = await plantTenants(database.pool, tenants);
  const recorder = recordStatements(database.pool);
  await exerciseOutbox(recorder.db, database.pool, endpoints);
  sent = [...new Map(recorder.statements.map((statement) => [statement.text, statement])).values()];
  client = await database.pool.connect();
});

afterAll(async () => {
  client?.release();
  await database.drop();
});

/** Two tenants for every part. */
async function chooseTenants(): Promise<Map<number, string[]>> {
  const byPart = new Map<number, string[]>();
  while ([...byPart.values()].filter((ids) => ids.length === 2).length < TWIN_PARTITIONS) {
    const id = randomUUID();
    const part = await partOf(database.pool, id);
    const ids = byPart.get(part) ?? [];
    if (ids.length < 2) byPart.set(part, [...ids, id]);
  }
  return byPart;
}

const isPlaceStatement = ({ file }: RecordedStatement): boolean => file in PLACE_STATEMENTS;

async function faultsOf(statement: RecordedStatement, reach?: Reach): Promise<string[]> {
  const usual = PLACE_STATEMENTS[statement.file] ?? { home: HOME };
  return tenantFaults(await explainScans(client, statement), reach ?? usual);
}

/** The faults of all statements, those without any left out. */
async function allFaults(statements: readonly RecordedStatement[], reach?: Reach) {
  const found = [];
  for (const statement of statements) {
    const faults = await faultsOf(statement, reach);
    if (faults.length > 0) found.push({ file: statement.file, faults });
  }
  return found;
}

/** The statement once for each match, that one replaced. */
function mutantsOf(
  statement: RecordedStatement,
  pattern: RegExp,
  replaceBy: (found: RegExpExecArray) => string,
): RecordedStatement[] {
  return [...statement.text.matchAll(pattern)].map((found) => {
    const after = statement.text.slice(found.index + found[0].length);
    return { ...statement, text: statement.text.slice(0, found.index) + replaceBy(found) + after };
  });
}

it('every piece of SQL in libs/outbox was sent, so that none escapes what follows', () => {
  const pieces = sqlPiecesIn(OUTBOX);
  expect(pieces.length).toBeGreaterThan(30);
  // Whoever adds a statement adds its call to test/support/exercise-outbox.ts.
  expect(pieces.filter((piece) => !sent.some(({ text }) => text.includes(piece.text)))).toEqual([]);
});

it('the twin has every table and column of the schema, split by tenant where it has one', async () => {
  expect(columnsBefore.length).toBeGreaterThan(100);
  expect(await readColumns()).toEqual(columnsBefore);
  const { rows: whole } = await database.pool.query<{ relname: string }>(
    `select relname from pg_class
     where relnamespace = 'waybill'::regnamespace and relkind = 'r' and not relispartition order by 1`,
  );
  expect(whole.map(({ relname }) => relname)).toEqual([
    'encryption_canary',
    'migrations',
    'replicas',
    'schema_revision',
  ]);
});

async function readColumns(): Promise<string[]> {
  const { rows } = await database.pool.query<{ value: string }>(
    `select c.relname || '.' || a.attname || ' ' || format_type(a.atttypid, a.atttypmod) as value
     from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
     where c.relnamespace = 'waybill'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
     order by 1`,
  );
  return rows.map(({ value }) => value);
}

/** The items of an array parameter, which may travel as its text. */
function listed(value: unknown): unknown[] {
  return typeof value === 'string' && value.startsWith('{') ? value.slice(1, -1).split(',') : [value].flat();
}

describe('for tenants of one part, a statement', () => {
  it('reads that part of each table and no other, and joins each by tenant', async () => {
    const routed = sent.filter((statement) => !isPlaceStatement(statement));
    expect(routed.length).toBeGreaterThan(15);
    expect(await allFaults(routed)).toEqual([]);
  });

  it('takes its tenants as its first parameter', () => {
    const routed = sent.filter(
      (statement) => !isPlaceStatement(statement) && /\btenant_id\b/.test(statement.text),
    );
    const given = routed.map(({ file, values }) => ({ file, tenants: listed(values[0]) }));
    expect(given.filter((one) => !one.tenants.every((id) => tenants.includes(String(id))))).toEqual([]);
  });

  it('is found out when any one of its tenant predicates is taken away', async () => {
    const mutants = sent
      .filter((statement) => !isPlaceStatement(statement))
      .flatMap((statement) =>
        mutantsOf(statement, /\b(?:(?:\w+\.)?tenant_id|t\.id) = (any\(\$1\)|\$1)(?!\d)/g, (found) =>
          found[1] === '$1' ? '$1::uuid is not null' : '$1::uuid[] is not null',
        ),
      );
    // The claim alone has five.
    expect(mutants.length).toBeGreaterThan(30);
    const missed = [];
    for (const mutant of mutants) if ((await faultsOf(mutant)).length === 0) missed.push(mutant);
    expect(missed).toEqual([]);
  });
});

describe('a statement about a whole place', () => {
  it('reaches what it does not walk by tenant', async () => {
    expect(await allFaults(sent.filter(isPlaceStatement))).toEqual([]);
  });

  it('is on the list because it cannot do otherwise', async () => {
    const found = await allFaults(sent.filter(isPlaceStatement), { home: HOME });
    expect(new Set(found.map(({ file }) => file))).toEqual(new Set(Object.keys(PLACE_STATEMENTS)));
  });

  it('is found out when a tenant join of it is taken away', async () => {
    // The first alias of each join is the table that is joined; one that is walked is not judged.
    const mutants = sent.filter(isPlaceStatement).flatMap((statement) => {
      const walked = PLACE_STATEMENTS[statement.file]!.walks.flatMap((table) =>
        [...statement.text.matchAll(new RegExp(`waybill\\.${table} (\\w+)`, 'g'))].map((found) => found[1]),
      );
      return mutantsOf(statement, /\b(\w+)\.tenant_id = \w+\.tenant_id\b/g, (found) =>
        walked.includes(found[1]) ? found[0] : 'true',
      ).filter((mutant) => mutant.text !== statement.text);
    });
    expect(mutants.length).toBeGreaterThan(3);
    const missed = [];
    for (const mutant of mutants) if ((await faultsOf(mutant)).length === 0) missed.push(mutant);
    expect(missed).toEqual([]);
  });
});

describe('what a statement writes', () => {
  it('comes from no volatile function', async () => {
    const writes = sent.filter(({ text }) => writingPart(text) !== '');
    expect(writes.length).toBeGreaterThan(6);
    for (const { file, text } of writes) {
      const volatile = await volatileFunctionsIn(database.pool, writingPart(text));
      expect({ file, volatile }).toEqual({ file, volatile: [] });
      // The same check, were it not so.
      const mutant = text.replace('now()', 'clock_timestamp()');
      const found = await volatileFunctionsIn(database.pool, writingPart(mutant));
      expect({ file, found }).toEqual({ file, found: text.includes('now()') ? ['clock_timestamp'] : [] });
    }
  });

  it('is found by one array of tenants, the batch’s columns and places, never by a second array of ids', () => {
    const arrays = sent
      .filter(({ text }) => writingPart(text) !== '')
      .flatMap(({ text }) =>
        [...writingPart(text).matchAll(/= any\s*\((?:\$\d+|array)/g)].map(([found]) => found),
      );
    expect([...new Set(arrays)].toSorted()).toEqual(['= any (array', '= any($1']);
  });
});
