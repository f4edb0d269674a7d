import { AppError, type Queryable } from '#runtime';

const DELETE_TENANT = `
update waybill.tenants t
set deleted_at = now(), suspended_at = coalesce(t.suspended_at, now())
where t.id = $1
  and t.deleted_at is null
`;

/**
 * Deletes a tenant with all that it owns: at once nobody finds it, its keys are no keys, nothing is stored or claimed
 * for it any more; its rows are taken away by the dispatcher. Throws `tenant_not_found`.
 */
export async function deleteTenant(db: Queryable, tenantId: string): Promise<void> {
  const { rowCount } = await db.query({ text: DELETE_TENANT, values: [tenantId] });
  if (rowCount !== 1) throw new AppError('tenant_not_found');
}
