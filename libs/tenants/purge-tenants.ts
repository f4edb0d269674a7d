import type { Queryable } from '#runtime';

/** The longest deleted first; several, so that one whose last writer does not end keeps nobody else waiting. */
const PURGE_TENANTS = `
select d.id, waybill.purge_tenant(d.id, $2) as removed
from (
  select t.id
  from waybill.tenants t
  where t.deleted_at is not null
  order by t.deleted_at
  limit $1
) d
`;

/** A step of a tenant's deletion: how many rows it took away, null when the tenant is gone. */
export interface PurgedTenant {
  readonly tenantId: string;
  readonly removed: number | null;
}

/**
 * Takes rows of deleted tenants away: of at most `tenants` of them, at most `rows` of one table each (and what shares their
 * places in its partitions). Whatever is killed meanwhile, the next call goes on. Replicas may run it side by side.
 */
export async function purgeTenants(
  db: Queryable,
  limits: { readonly tenants: number; readonly rows: number },
): Promise<readonly PurgedTenant[]> {
  const { rows } = await db.query<{ id: string; removed: number | null }>({
    text: PURGE_TENANTS,
    values: [limits.tenants, limits.rows],
  });
  return rows.map(({ id, removed }) => ({ tenantId: id, removed }));
}
