import { formatId } from '#runtime';
import type { Tenant } from '#tenants';

/** A tenant as the operator sees it. */
export function tenantView(tenant: Tenant) {
  return {
    id: formatId('tenant', tenant.id),
    name: tenant.name,
    status: tenant.deletedAt !== null ? 'deleting' : tenant.suspendedAt !== null ? 'suspended' : 'active',
    version: tenant.version,
    created_at: tenant.createdAt.toISOString(),
    updated_at: tenant.updatedAt.toISOString(),
    suspended_at: tenant.suspendedAt?.toISOString() ?? null,
    deleted_at: tenant.deletedAt?.toISOString() ?? null,
  };
}
