import type { Pool } from 'pg';

const OWNED_TABLES = `
select c.relname as name, a.attname as owner
from pg_class c
join pg_attribute a on a.attrelid = c.oid
  and a.attname = case when c.relname = 'tenants' then 'id' else 'tenant_id' end and not a.attisdropped
where c.relnamespace = 'waybill'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
order by 1
`;

/** A digest of every row that a tenant owns, in every table there is: equal digests mean that nothing was touched. */
export async function ownedRowsHash(pool: Pool, tenantId: string): Promise<string> {
  const { rows } = await pool.query<{ name: string; owner: string }>(OWNED_TABLES);
  const parts = rows.map(
    ({ name, owner }) =>
      `select '${name}' as name, md5(coalesce(string_agg(x::text, e'\\n' order by x::text), '')) as hash
       from waybill.${name} x where x.${owner} = $1`,
  );
  const { rows: hashes } = await pool.query<{ name: string; hash: string }>(parts.join(' union all '), [
    tenantId,
  ]);
  return hashes
    .map(({ name, hash }) => `${name} ${hash}`)
    .toSorted()
    .join('\n');
}
