import type { Pool } from 'pg';

/** How many parts each table of a twin has. */
export const TWIN_PARTITIONS = 8;

// A table that no tenant owns stays whole: a distributed database keeps a copy of it in every place.
const TABLES = `
select c.relname as name, a.attname as owner
from pg_class c
left join pg_attribute a on a.attrelid = c.oid
  and a.attname = case when c.relname = 'tenants' then 'id' else 'tenant_id' end
where c.relnamespace = 'waybill'::regnamespace
  and c.relkind in ('r', 'p')
  and not c.relispartition
order by 1
`;

const FUNCTIONS = `
select format('alter function product.%I(%s) set schema waybill', p.proname, pg_get_function_identity_arguments(p.oid)) as move
from pg_proc p
where p.pronamespace = 'product'::regnamespace
`;

/**
 * Turns a migrated database into the twin of a distributed one: the same tables with the same columns, checks and
 * indexes, but each split by its tenant's hash, as Citus would place them. It is read off the catalogue, so a new table
 * or column is in it by itself, and a unique key without tenant_id cannot be made at all. Days are not split again: a
 * statement is judged by the tenants it touches. Foreign keys are left out; they stay within one tenant by rule 1.
 */
export async function makeTwin(pool: Pool): Promise<void> {
  const { rows: tables } = await pool.query<{ name: string; owner: string | null }>(TABLES);
  const client = await pool.connect();
  try {
    await client.query('begin');
    await client.query('alter schema waybill rename to product');
    await client.query('create schema waybill');
    const { rows: functions } = await client.query<{ move: string }>(FUNCTIONS);
    for (const { move } of functions) await client.query(move);
    for (const { name, owner } of tables) {
      await client.query(
        owner === null ? `alter table product.${name} set schema waybill` : splitTable(name, owner),
      );
    }
    await client.query('drop schema product cascade');
    await client.query('commit');
  } finally {
    client.release();
  }
}

function splitTable(name: string, owner: string): string {
  const parts = Array.from(
    { length: TWIN_PARTITIONS },
    (_, part) =>
      `create table waybill.${name}_part${part} partition of waybill.${name} for values with (modulus ${TWIN_PARTITIONS}, remainder ${part})`,
  );
  return [
    `create table waybill.${name} (like product.${name} including all) partition by hash (${owner})`,
    ...parts,
  ].join(';\n');
}

/** The table and the part that a relation of the twin is; null for one that is not split. */
export function parsePart(relation: string): { readonly table: string; readonly part: number } | null {
  const match = /^(\w+)_part(\d+)$/.exec(relation);
  return match === null ? null : { table: match[1]!, part: Number(match[2]) };
}

/** The part in which all rows of a tenant lie; the same in every table. */
export async function partOf(pool: Pool, tenantId: string): Promise<number> {
  const { rows } = await pool.query<{ part: number }>(
    `select part from generate_series(0, $1 - 1) part
     where satisfies_hash_partition('waybill.events'::regclass, $1, part, $2::uuid)`,
    [TWIN_PARTITIONS, tenantId],
  );
  return rows[0]!.part;
}
