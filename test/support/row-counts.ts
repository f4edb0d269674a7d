import type { Pool } from 'pg';

const TABLES = [
  'tenants',
  'api_keys',
  'consumers',
  'endpoints',
  'endpoint_secrets',
  'tenant_data_keys',
  'subscriptions',
  'events',
  'deliveries',
  'delivery_queue',
  'attempts',
  'dead_letters',
  'replays',
  'idempotency_keys',
] as const;

/** How many rows each of our tables holds: taken before and after a request that must store nothing. */
export async function rowCounts(pool: Pool): Promise<Record<(typeof TABLES)[number], number>> {
  const counts = TABLES.map((table) => `(select count(*)::integer from waybill.${table}) as ${table}`);
  const { rows } = await pool.query(`select ${counts.join(', ')}`);
  return rows[0];
}

const OWNED_TABLES = `
select c.relname::text as name, a.attname::text as owner
from pg_class c
join pg_attribute a on a.attrelid = c.oid
  and a.attname = case c.relname when 'tenants' then 'id' else 'tenant_id' end
where c.relnamespace = 'waybill'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
order by 1
`;

/**
 * All rows of a tenant as text, by table: the same before and after what must not touch that tenant. The tables are read
 * off the catalogue, so that no new one is forgotten. Without the time at which a key was last used: asking alone changes
 * it, a second later.
 */
export async function tenantRows(pool: Pool, tenantId: string): Promise<Record<string, string[]>> {
  const found: Record<string, string[]> = {};
  const { rows: tables } = await pool.query<{ name: string; owner: string }>(OWNED_TABLES);
  for (const { name, owner } of tables) {
    const { rows } = await pool.query<{ row: string }>(
      `select (to_jsonb(t) - 'last_used_at')::text as row from waybill.${name} t where ${owner} = $1 order by 1`,
      [tenantId],
    );
    found[name] = rows.map(({ row }) => row);
  }
  return found;
}
