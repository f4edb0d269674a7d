import { AppError, type Queryable } from '#runtime';
import { assertName } from './assert-name.js';
import { findTenant } from './find-tenant.js';
import { TENANT_COLUMNS, toTenant, type Tenant, type TenantRow } from './tenant.js';

const RENAME_TENANT = `
update waybill.tenants t
set name = $3, version = t.version + 1, updated_at = now()
where t.id = $1
  and t.version = $2
  and t.deleted_at is null
returning ${TENANT_COLUMNS}
`;

/**
 * Gives a tenant another name if it is at a version that is expected: of two at once, one. Throws `tenant_not_found` and
 * `stale_version`.
 */
export async function renameTenant(
  db: Queryable,
  tenantId: string,
  name: string,
  expects: (version: number) => boolean,
): Promise<Tenant> {
  assertName(name);
  for (;;) {
    const { version } = await findTenant(db, tenantId);
    if (!expects(version)) throw new AppError('stale_version', `The tenant is at version ${version}.`);
    const { rows } = await db.query<TenantRow>({ text: RENAME_TENANT, values: [tenantId, version, name] });
    // Nothing: somebody was quicker, and it is at another version now.
    if (rows[0] !== undefined) return toTenant(rows[0]);
  }
}
