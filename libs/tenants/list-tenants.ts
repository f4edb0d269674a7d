import type { Queryable } from '#runtime';
import { TENANT_COLUMNS, toTenant, type Tenant, type TenantRow } from './tenant.js';

const LIST_TENANTS = `
select ${TENANT_COLUMNS}
from waybill.tenants t
where ($1::uuid is null or t.id < $1)
  and (t.deleted_at is not null) = $2
order by t.id desc
limit $3
`;

export interface TenantFilter {
  readonly afterId: string | null;
  /** Those that are being deleted, and no others; else those that are not. */
  readonly deleting: boolean;
  readonly limit: number;
}

/** Tenants, newest first, at most `limit`, those older than the tenant `afterId` when it is given; for the operator. */
export async function listTenants(
  db: Queryable,
  { afterId, deleting, limit }: TenantFilter,
): Promise<Tenant[]> {
  const { rows } = await db.query<TenantRow>({ text: LIST_TENANTS, values: [afterId, deleting, limit] });
  return rows.map(toTenant);
}
