import { readdirSync, readFileSync } from 'node:fs';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { volatileFunctionsIn } from '../support/sql-functions.js';

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

async function column(sql: string): Promise<string[]> {
  const { rows } = await database.pool.query<{ value: string }>(sql);
  return rows.map(({ value }) => value);
}

const OURS = `c.relnamespace = 'waybill'::regnamespace`;

describe('the schema in the catalogue', () => {
  it('leads every primary key, unique and foreign key with tenant_id', async () => {
    const keys = await column(`
      select c.relname || ': ' || pg_get_constraintdef(k.oid) as value
      from pg_constraint k
      join pg_class c on c.oid = k.conrelid
      where ${OURS} and k.contype in ('p', 'u', 'f', 'x')
      order by 1`);
    // The rule has something to say about.
    expect(keys.length).toBeGreaterThan(50);
    const breaking = keys.filter((key) => !/: (PRIMARY KEY|UNIQUE|FOREIGN KEY) \(tenant_id\b/.test(key));
    expect(breaking).toEqual([
      'encryption_canary: PRIMARY KEY (kek_version)',
      'migrations: PRIMARY KEY (id)',
      'replicas: PRIMARY KEY (id)',
      'schema_revision: PRIMARY KEY (only_row)',
      'tenants: PRIMARY KEY (id)',
    ]);
  });

  it('gives every table a tenant, and every foreign key a target of the same tenant', async () => {
    const unowned = await column(`
      select c.relname::text as value
      from pg_class c
      left join pg_attribute a on a.attrelid = c.oid and a.attname = 'tenant_id' and a.attnotnull
        and a.atttypid = 'uuid'::regtype
      where ${OURS} and c.relkind in ('r', 'p') and a.attname is null
      order by 1`);
    // The catalogues, whole in every place of a distributed database.
    expect(unowned).toEqual(['encryption_canary', 'migrations', 'replicas', 'schema_revision', 'tenants']);
    const targets = await column(`
      select substring(pg_get_constraintdef(k.oid) from 'REFERENCES (.*)') as value
      from pg_constraint k join pg_class c on c.oid = k.conrelid
      where ${OURS} and k.contype = 'f'`);
    expect(targets.length).toBeGreaterThan(2);
    expect(targets.filter((target) => !/^waybill\.(tenants\(id\)|\w+\(tenant_id, )/.test(target))).toEqual(
      [],
    );
  });

  it('splits what happened by the id of the event, and keeps used keys apart from it', async () => {
    expect(
      await column(`
        select c.relname || ' ' || pg_get_partkeydef(c.oid) as value from pg_class c
        where ${OURS} and c.relkind = 'p' order by 1`),
    ).toEqual(['attempts RANGE (event_id)', 'deliveries RANGE (event_id)', 'events RANGE (id)']);
    expect(
      await column(`
        select c.relname || ' ' || pg_get_constraintdef(k.oid) as value
        from pg_constraint k join pg_class c on c.oid = k.conrelid
        where ${OURS} and k.contype in ('p', 'u') and c.relname in ('events', 'idempotency_keys') order by 1`),
    ).toEqual(['events PRIMARY KEY (tenant_id, id)', 'idempotency_keys PRIMARY KEY (tenant_id, key)']);
  });

  it('fills no column by a volatile function', async () => {
    const defaults = await column(`
      select c.relname || '.' || a.attname || ' ' || pg_get_expr(d.adbin, d.adrelid) as value
      from pg_attrdef d
      join pg_class c on c.oid = d.adrelid
      join pg_attribute a on a.attrelid = d.adrelid and a.attnum = d.adnum
      where ${OURS} and not c.relispartition order by 1`);
    expect(defaults.length).toBeGreaterThan(10);
    const breaking: string[] = [];
    for (const filled of defaults) {
      if ((await volatileFunctionsIn(database.pool, filled)).length > 0) breaking.push(filled.split(' ')[0]!);
    }
    // TypeORM's own.
    expect(breaking).toEqual(['migrations.id']);
  });

  it('leads every unique index with tenant_id, and names the other indexes that do not', async () => {
    const indexes = await column(`
      select x.relname || case when i.indisunique then ' unique' else '' end as value
      from pg_index i
      join pg_class c on c.oid = i.indrelid
      join pg_class x on x.oid = i.indexrelid
      join pg_attribute a on a.attrelid = c.oid and a.attnum = i.indkey[0]
      where ${OURS} and c.relkind in ('r', 'p') and not c.relispartition and a.attname <> 'tenant_id'
      order by 1`);
    // The name of TypeORM's own primary key ends in a hash.
    expect(indexes.filter((name) => !/^PK_\w+ unique$/.test(name))).toEqual([
      'api_keys_by_id',
      'circuits_open',
      'delivery_queue_discover',
      'encryption_canary_pkey unique',
      'idempotency_keys_by_age',
      'replicas_pkey unique',
      'schema_revision_pkey unique',
      'tenants_deleted',
      'tenants_pkey unique',
    ]);
  });

  it('leaves the schema public empty', async () => {
    expect(
      await column(`
        select c.relname::text as value from pg_class c where c.relnamespace = 'public'::regnamespace
        union all select p.proname::text from pg_proc p where p.pronamespace = 'public'::regnamespace
        union all select t.typname::text from pg_type t where t.typnamespace = 'public'::regnamespace`),
    ).toEqual([]);
  });

  it('has no triggers, no rules, no sequences of ours, and two volatile functions: one makes partitions, one erases a deleted tenant', async () => {
    // PostgreSQL keeps foreign keys by triggers of its own, which are internal.
    expect(
      await column(
        `select t.tgname::text as value from pg_trigger t join pg_class c on c.oid = t.tgrelid where ${OURS} and not t.tgisinternal`,
      ),
    ).toEqual([]);
    expect(
      await column(
        `select r.rulename::text as value from pg_rewrite r join pg_class c on c.oid = r.ev_class where ${OURS}`,
      ),
    ).toEqual([]);
    expect(
      await column(`select c.relname::text as value from pg_class c where ${OURS} and c.relkind = 'S'`),
    ).toEqual(['migrations_id_seq']);
    expect(
      await column(
        `select proname::text as value from pg_proc where pronamespace = 'waybill'::regnamespace and provolatile <> 'i' order by 1`,
      ),
    ).toEqual(['create_day_partitions', 'purge_tenant']);
  });

  it('has the two index orders of the queue, a half-filled heap, and no index on what a claim writes', async () => {
    expect(
      await column(`
        select substring(pg_get_indexdef(i.indexrelid) from '\\((.*)\\)') as value
        from pg_index i where i.indrelid = 'waybill.delivery_queue'::regclass order by 1`),
    ).toEqual([
      'due_at, tenant_id, endpoint_id',
      'tenant_id, endpoint_id, due_at',
      'tenant_id, event_id, endpoint_id',
    ]);
    expect(
      await column(
        `select unnest(reloptions) as value from pg_class where oid = 'waybill.delivery_queue'::regclass`,
      ),
    ).toContain('fillfactor=50');
  });

  it('lets no code detach a partition concurrently', () => {
    const sources = ['migrations', 'libs', 'apps'].flatMap((folder) =>
      readdirSync(new URL(`../../${folder}/`, import.meta.url), { recursive: true, encoding: 'utf8' })
        .filter((name) => name.endsWith('.ts') && !name.endsWith('.test.ts'))
        .map((name) => `${folder}/${name}`),
    );
    expect(sources.length).toBeGreaterThan(50);
    const detaching = sources.filter((name) =>
      /detach\s+partition[^;]*\bconcurrently\b/i.test(
        readFileSync(new URL(`../../${name}`, import.meta.url), 'utf8'),
      ),
    );
    expect(detaching).toEqual([]);
  });
});

describe('the day partitions', () => {
  it('stand from yesterday to fourteen days ahead, attached, without a default', async () => {
    for (const parent of ['events', 'deliveries', 'attempts']) {
      const children = await column(`
        select c.relname || ' ' || pg_get_expr(c.relpartbound, c.oid) as value
        from pg_inherits i join pg_class c on c.oid = i.inhrelid
        where i.inhparent = 'waybill.${parent}'::regclass order by 1`);
      expect(children.filter((child) => child.includes('DEFAULT'))).toEqual([]);
      const days = await column(`
        select to_char((now() at time zone 'UTC')::date + n, 'YYYYMMDD') as value from generate_series(-1, 14) n`);
      expect(children.map((child) => child.split(' ')[0])).toEqual(days.map((day) => `${parent}_${day}`));
      // Each bound is where the next one begins: no hole between the days, and each is a UTC midnight.
      const bounds = children.map((child) => /FROM \('(.+?)'\) TO \('(.+?)'\)/.exec(child)!.slice(1));
      expect(bounds.slice(1).map(([from]) => from)).toEqual(bounds.slice(0, -1).map(([, to]) => to));
      for (const [from] of bounds) {
        const bornMs = Number.parseInt(from!.replaceAll('-', '').slice(0, 12), 16);
        expect(bornMs % 86_400_000).toBe(0);
      }
    }
  });

  it('refuse an event of a day that nobody made', async () => {
    const far = await database.pool
      .query(
        `insert into waybill.attempts (tenant_id, event_id, endpoint_id, number, outcome, endpoint_revision, started_at, duration_ms)
         values (gen_random_uuid(), waybill.event_id(now() + interval '40 days', gen_random_uuid()), gen_random_uuid(), 1, 'failed', 1, now(), 1)`,
      )
      .catch((error: Error) => error.message);
    expect(far).toMatch(/no partition of relation "attempts" found/);
  });
});
