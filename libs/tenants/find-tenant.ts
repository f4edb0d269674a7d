import { AppError, type Queryable } from '#runtime';
import { TENANT_COLUMNS, toTenant, type Tenant, type TenantRow } from './tenant.js';

const FIND_TENANT = `
select ${TENANT_COLUMNS}
from waybill.tenants t
where t.id = $1
  and t.deleted_at is null
`;

/** The tenant; throws `tenant_not_found` when there is none, or none any more. */
export async function findTenant(db: Queryable, tenantId: string): Promise<Tenant> {
  const { rows } = await db.query<TenantRow>({ text: FIND_TENANT, values: [tenantId] });
  if (rows[0] === undefined) throw new AppError('tenant_not_found');
  return toTenant(rows[0]);
}
