import { newId, type Queryable, transactionTimeMs } from '#runtime';
import { assertName } from './assert-name.js';
import { TENANT_COLUMNS, toTenant, type Tenant, type TenantRow } from './tenant.js';

const CREATE_TENANT = `
insert into waybill.tenants as t (id, name, created_at, updated_at)
values ($1, $2, now(), now())
returning ${TENANT_COLUMNS}
`;

/** Stores a new tenant. */
export async function createTenant(db: Queryable, { name }: { readonly name: string }): Promise<Tenant> {
  assertName(name);
  const { rows } = await db.query<TenantRow>({
    text: CREATE_TENANT,
    values: [newId(await transactionTimeMs(db)), name],
  });
  return toTenant(rows[0]!);
}
