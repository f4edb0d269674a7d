import type { Pool } from 'pg';

const TABLES = [
  'tenants',
  'api_keys',
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

/**
 * All rows of a tenant as text, by table: the same before and after what must not touch that tenant. Without the time at
 * which a key was last used: asking alone changes it, a second later.
 */
export async function tenantRows(pool: Pool, tenantId: string): Promise<Record<string, string[]>> {
  const found: Record<string, string[]> = {};
  for (const table of TABLES) {
    const column = table === 'tenants' ? 'id' : 'tenant_id';
    const { rows } = await pool.query<{ row: string }>(
      `select (to_jsonb(t) - 'last_used_at')::text as row from waybill.${table} t where ${column} = $1 order by 1`,
      [tenantId],
    );
    found[table] = rows.map(({ row }) => row);
  }
  return found;
}
