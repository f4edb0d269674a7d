import { randomUUID } from 'node:crypto';

import { openDataSource, sqlState } from '#runtime';
import { withTenant } from '#tenants';
import type { Pool } from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { exerciseOutbox, plantTenants } from '../support/exercise-outbox.js';
import { rolePool } from '../support/role-pool.js';

/** What no tenant owns, and why nobody can read another's secrets there. */
const WITHOUT_TENANT = {
  encryption_canary: 'a known text under each key-encryption key',
  migrations: 'the names of migrations',
  replicas: 'heartbeats of dispatchers',
  schema_revision: 'two numbers',
};
/**
 * Functions that run as their owner: one reads no row and takes nothing that names one, the other only takes away what a
 * deleted tenant has.
 */
const AS_OWNER = ['waybill.create_day_partitions(date,integer)', 'waybill.purge_tenant(uuid,integer)'];
const APP_CONDITION = `= (NULLIF(current_setting('waybill.tenant'::text, true), ''::text))::uuid)`;
const INSUFFICIENT_PRIVILEGE = '42501';

let database: TestDatabase;
let app: Pool;
const ours = randomUUID();
const theirs = randomUUID();

beforeAll(async () => {
  database = await createTestDatabase();
  app = rolePool(database.url, 'waybill_app');
  for (const tenant of [ours, theirs]) {
    const endpoints = await plantTenants(database.pool, [tenant]);
    await exerciseOutbox(database.pool, database.pool, endpoints);
  }
  await plantRest();
});
afterAll(async () => {
  await app.end();
  await database.drop();
});

/** One row a tenant in each table that the outbox leaves empty. */
async function plantRest(): Promise<void> {
  for (const tenant of [ours, theirs]) {
    const { rows } = await database.pool.query<{ id: string }>(
      'select id from waybill.endpoints where tenant_id = $1 limit 1',
      [tenant],
    );
    const endpoint = rows[0]!.id;
    await database.pool.query({
      text: `
        insert into waybill.api_keys (tenant_id, id, name, secret_digest, scopes)
        values ('${tenant}', gen_random_uuid(), 'key', sha256('x'), '{admin}');
        insert into waybill.tenant_data_keys (tenant_id, version, wrapped_key, kek_version)
        values ('${tenant}', 1, decode(repeat('00', 65), 'hex'), 1);
        insert into waybill.consumers (tenant_id, id, uid) values ('${tenant}', gen_random_uuid(), 'planted');
        insert into waybill.tenant_data_keys (tenant_id, version, wrapped_key, kek_version)
        values ('${tenant}', 1, decode(repeat('00', 65), 'hex'), 1) on conflict do nothing;
        insert into waybill.rate_tokens (tenant_id, endpoint_id, tokens, refilled_at)
        values ('${tenant}', '${endpoint}', 1, now()) on conflict do nothing;
        insert into waybill.circuits (tenant_id, endpoint_id) values ('${tenant}', '${endpoint}') on conflict do nothing;
        insert into waybill.announcements (tenant_id, event_type, subject_id, endpoint_id, created_at)
        values ('${tenant}', 'waybill.endpoint.disabled', gen_random_uuid(), '${endpoint}', now());
        insert into waybill.idempotency_keys (tenant_id, key, fingerprint, resource_id, created_at)
        values ('${tenant}', 'planted', sha256('x'), gen_random_uuid(), now());
        insert into waybill.replays (tenant_id, id, event_id, endpoint_id, delivery_id, created_at)
        values ('${tenant}', gen_random_uuid(), gen_random_uuid(), '${endpoint}', gen_random_uuid(), now());
        insert into waybill.dead_letters (tenant_id, event_id, endpoint_id, delivery_id, reason, attempt_count, died_at)
        values ('${tenant}', gen_random_uuid(), '${endpoint}', gen_random_uuid(), 'exhausted', 1, now())`,
    });
  }
}

async function column(sql: string, values: unknown[] = []): Promise<string[]> {
  const { rows } = await database.pool.query<{ value: string }>(sql, values);
  return rows.map(({ value }) => value);
}

/** Every table that holds rows of tenants, with the column that says whose. */
async function tenantTables(): Promise<{ name: string; owner: string }[]> {
  const names = await column(`
    select c.relname as value from pg_class c
    where c.relnamespace = 'waybill'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
    order by 1`);
  return names
    .filter((name) => !(name in WITHOUT_TENANT))
    .map((name) => ({ name, owner: name === 'tenants' ? 'id' : 'tenant_id' }));
}

describe('the catalogue', () => {
  it('has row-level security enabled and forced on every table and partition with a tenant', async () => {
    const open = await column(`
      select c.relname as value from pg_class c
      where c.relnamespace = 'waybill'::regnamespace and c.relkind in ('r', 'p')
        and not (c.relrowsecurity and c.relforcerowsecurity)
      order by 1`);
    expect(open).toEqual(Object.keys(WITHOUT_TENANT));
  });

  it('has on each of them one policy for waybill_app, by the tenant of the transaction, and one for the platform', async () => {
    for (const { name, owner } of await tenantTables()) {
      const policies = await column(
        `select policyname || ' ' || permissive || ' ' || cmd || ' ' || array_to_string(roles, ',')
           || ' ' || qual || ' ' || with_check as value
         from pg_policies where schemaname = 'waybill' and tablename = $1 order by policyname`,
        [name],
      );
      const platform = 'waybill_dispatcher,waybill_intake,waybill_operator,waybill_owner';
      const condition = `(${owner} ${APP_CONDITION}`;
      expect(policies, name).toEqual([
        `every_tenant PERMISSIVE ALL ${platform} true true`,
        `one_tenant PERMISSIVE ALL waybill_app ${condition} ${condition}`,
      ]);
    }
  });

  it('grants nobody TRUNCATE, REFERENCES or TRIGGER, the public nothing, and partitions to nobody', async () => {
    const grants = await column(`
      select c.relname || ': ' || a.privilege_type || ' to ' || case a.grantee when 0 then 'public' else a.grantee::regrole::text end as value
      from pg_class c, aclexplode(c.relacl) a
      where c.relnamespace = 'waybill'::regnamespace and a.grantee <> c.relowner
        and (a.grantee = 0 or c.relispartition or a.privilege_type not in ('SELECT', 'INSERT', 'UPDATE', 'DELETE'))`);
    expect(grants).toEqual([]);
    const functions = await column(`
      select p.oid::regprocedure::text as value
      from pg_proc p
      where p.pronamespace = 'waybill'::regnamespace and (p.proacl is null or exists (
        select from aclexplode(p.proacl) a where a.grantee = 0))`);
    expect(functions).toEqual([]);
  });

  it('runs no function as its owner but those that are named above, and no view as its owner', async () => {
    expect(
      await column(
        `select p.oid::regprocedure::text as value from pg_proc p where p.pronamespace = 'waybill'::regnamespace and p.prosecdef order by 1`,
      ),
    ).toEqual(AS_OWNER);
    expect(
      await column(
        `select c.relname as value from pg_class c where c.relnamespace = 'waybill'::regnamespace and c.relkind in ('v', 'm')
           and coalesce(array_to_string(c.reloptions, ','), '') not like '%security_invoker=true%'`,
      ),
    ).toEqual([]);
  });

  it('gives everything to waybill_owner, and no role of ours a login or a way past row-level security', async () => {
    expect(
      await column(`
        select distinct relowner::regrole::text as value from pg_class
        where relnamespace = 'waybill'::regnamespace and relkind in ('r', 'p', 'v')
        union
        select distinct proowner::regrole::text from pg_proc where pronamespace = 'waybill'::regnamespace`),
    ).toEqual(['waybill_owner']);
    // The embedded server's superuser has the owner's name.
    expect(
      await column(`
        select rolname as value from pg_roles
        where rolname like 'waybill\\_%' and rolname <> 'waybill_owner' and rolname not like 'waybill\\_test\\_%'
          and (rolcanlogin or rolsuper or rolbypassrls or rolcreaterole or rolinherit)`),
    ).toEqual([]);
  });
});

describe('a session of waybill_app', () => {
  it('sees no row of any table before a tenant is set, and none of another tenant after', async () => {
    for (const { name, owner } of await tenantTables()) {
      const { rows } = await database.pool.query<{ tenant: string }>(
        `select distinct ${owner} as tenant from waybill.${name}`,
      );
      // A table without rows would prove nothing.
      expect(rows.map(({ tenant }) => tenant).toSorted(), name).toEqual([ours, theirs].toSorted());
      if (!(await mayRead(name))) continue;
      expect((await app.query(`select from waybill.${name}`)).rowCount, name).toBe(0);
      const seen = await asTenant(ours, (client) =>
        client.query(`select ${owner} as tenant from waybill.${name}`),
      );
      expect(seen.rowCount, name).toBeGreaterThan(0);
      expect(new Set(seen.rows.map((row: { tenant: string }) => row.tenant)), name).toEqual(new Set([ours]));
    }
  });

  it('changes and takes away nothing of another tenant, and writes nothing in its name', async () => {
    for (const { name, owner } of await tenantTables()) {
      for (const privilege of ['UPDATE', 'DELETE', 'INSERT'] as const) {
        if (!(await may(name, privilege))) continue;
        const before = await hashOf(name, owner);
        const statement = await tryOf(name, owner, privilege);
        const tries: unknown = await asTenant(ours, (client) => client.query(statement)).catch(
          (error: unknown) => error,
        );
        if (privilege === 'INSERT') expect(sqlState(tries), name).toBe(INSUFFICIENT_PRIVILEGE);
        else expect(tries, `${privilege} ${name}`).toMatchObject({ rowCount: 0 });
        expect(await hashOf(name, owner), `${privilege} ${name}`).toBe(before);
      }
    }
  });

  it('cannot reach a partition by its own name', async () => {
    const partition = (
      await column(
        `select inhrelid::regclass::text as value from pg_inherits where inhparent = 'waybill.events'::regclass`,
      )
    )[0]!;
    const error: unknown = await asTenant(ours, (client) => client.query(`select from ${partition}`)).catch(
      (thrown: unknown) => thrown,
    );
    expect(sqlState(error)).toBe(INSUFFICIENT_PRIVILEGE);
  });
});

describe('withTenant', () => {
  it('leaves no tenant on the connection, after a commit, a rollback and a statement that failed', async () => {
    const source = await openDataSource({
      url: database.url,
      role: 'waybill_app',
      entities: [],
      applicationName: 'waybill-test',
      max: 1,
    });
    const count = async (): Promise<number> => {
      const [row] = await source.query<{ n: number }[]>(
        'select count(*)::integer as n from waybill.endpoints',
      );
      return row!.n;
    };
    try {
      const seen = await withTenant(source, ours, (tx) =>
        tx.query({ text: 'select from waybill.endpoints' }),
      );
      expect(seen.rowCount).toBe(3);
      expect(await count()).toBe(0);
      await expect(
        withTenant(source, ours, () => Promise.reject(new Error('planted by the test'))),
      ).rejects.toThrow('planted by the test');
      expect(await count()).toBe(0);
      await expect(withTenant(source, ours, (tx) => tx.query({ text: 'select 1/0' }))).rejects.toThrow(
        'zero',
      );
      expect(await count()).toBe(0);
    } finally {
      await source.destroy();
    }
  });

  it.each(["' or true --", '', ours.toUpperCase(), `${ours}'`, '{}'])(
    'refuses %j for a tenant before a connection is taken',
    async (tenantId) => {
      const source = await openDataSource({
        url: database.url,
        role: 'waybill_app',
        entities: [],
        applicationName: 'waybill-test',
        max: 1,
      });
      try {
        await expect(withTenant(source, tenantId, () => Promise.resolve())).rejects.toThrow(TypeError);
      } finally {
        await source.destroy();
      }
    },
  );
});

async function asTenant<Result>(
  tenantId: string,
  run: (client: Pick<Pool, 'query'>) => Promise<Result>,
): Promise<Result> {
  const client = await app.connect();
  try {
    await client.query(`begin; set local waybill.tenant = '${tenantId}'`);
    return await run(client);
  } finally {
    await client.query('rollback');
    client.release();
  }
}

const mayRead = (name: string): Promise<boolean> => may(name, 'SELECT');

async function may(name: string, privilege: string): Promise<boolean> {
  return (
    await column(`select has_table_privilege('waybill_app', $1, $2) as value`, [`waybill.${name}`, privilege])
  )[0] as unknown as boolean;
}

/** What an attacker would try with a hole in our own conditions: no condition at all, or theirs. */
async function tryOf(
  name: string,
  owner: string,
  privilege: 'UPDATE' | 'DELETE' | 'INSERT',
): Promise<string> {
  if (privilege === 'DELETE') return `delete from waybill.${name} where ${owner} <> '${ours}'`;
  const columns = await column(
    `select quote_ident(a.attname) as value from pg_attribute a
     where a.attrelid = $1::regclass and a.attnum > 0 and not a.attisdropped and a.attgenerated = '' order by a.attnum`,
    [`waybill.${name}`],
  );
  if (privilege === 'UPDATE')
    return `update waybill.${name} set ${columns.at(-1)} = ${columns.at(-1)} where ${owner} <> '${ours}'`;
  const values = columns.map((value) => (value === owner ? `'${theirs}'` : value));
  return `insert into waybill.${name} (${columns.join(', ')}) select ${values.join(', ')} from waybill.${name} limit 1`;
}

async function hashOf(name: string, owner: string): Promise<string> {
  const rows = await column(
    `select coalesce(md5(string_agg(x::text, e'\\n' order by x::text)), '') as value from waybill.${name} x where ${owner} = $1`,
    [theirs],
  );
  return rows[0]!;
}
