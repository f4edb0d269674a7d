import type { Queryable } from '#runtime';

const NAME_KEY_RESOURCE = `
update waybill.idempotency_keys
set resource_id = $3
where tenant_id = $1
  and key = $2
`;

/** Says what the transaction that claimed a key has made under it: what a repeat is answered with. */
export async function nameKeyResource(
  tx: Queryable,
  tenantId: string,
  key: string,
  resourceId: string,
): Promise<void> {
  await tx.query({ name: 'name-key-resource', text: NAME_KEY_RESOURCE, values: [tenantId, key, resourceId] });
}
