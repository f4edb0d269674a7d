import { AppError, type Queryable } from '#runtime';
import { TENANT_COLUMNS, toTenant, type Tenant, type TenantRow } from './tenant.js';

const SUSPEND_TENANT = `
update waybill.tenants t
set suspended_at = case when $2 then coalesce(t.suspended_at, now()) end,
  version = t.version + ((t.suspended_at is not null) <> $2)::integer,
  updated_at = case when (t.suspended_at is not null) <> $2 then now() else t.updated_at end
where t.id = $1
  and t.deleted_at is null
returning ${TENANT_COLUMNS}
`;

/**
 * Suspends a tenant, or lets it go on: its keys answer 403 from the next request, and nothing more is claimed for it.
 * One that is so already is left as it is. Throws `tenant_not_found`.
 */
export async function suspendTenant(
  db: Queryable,
  tenantId: string,
  { suspended }: { readonly suspended: boolean },
): Promise<Tenant> {
  const { rows } = await db.query<TenantRow>({ text: SUSPEND_TENANT, values: [tenantId, suspended] });
  if (rows[0] === undefined) throw new AppError('tenant_not_found');
  return toTenant(rows[0]);
}
