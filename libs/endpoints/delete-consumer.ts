import type { ConsumerReference, VersionExpectation } from '#runtime';
import { lockConsumer, type TenantTransaction } from '#tenants';

const BURY_CONSUMER = `
update waybill.consumers
set deleted_at = now(), updated_at = now(), version = version + 1
where tenant_id = $1 and id = $2
`;

const BURY_ENDPOINTS = `
update waybill.endpoints
set deleted_at = now(), updated_at = now(), version = version + 1
where tenant_id = $1 and consumer_id = $2 and deleted_at is null
returning id
`;

const DELETE_SUBSCRIPTIONS = `
delete from waybill.subscriptions
where tenant_id = $1 and addressee_id = $2
`;

/** Locked in the order of their keys, as whoever records attempts locks them. */
const DELETE_CIRCUITS = `
with locked as materialized (
  select c.endpoint_id
  from waybill.circuits c
  join waybill.endpoints p on p.tenant_id = $1 and p.id = c.endpoint_id
  where c.tenant_id = $1
    and p.consumer_id = $2
  order by c.endpoint_id
  for update of c
)
delete from waybill.circuits c
using locked l
where c.tenant_id = $1
  and c.endpoint_id = l.endpoint_id
`;

const DELETE_RATE_TOKENS = `
delete from waybill.rate_tokens r
using waybill.endpoints p
where r.tenant_id = $1
  and p.tenant_id = $1
  and p.consumer_id = $2
  and r.endpoint_id = p.id
`;

/**
 * Marks a consumer deleted, and its endpoints with it, as deleteEndpoint does; returns those endpoints. All of it
 * commits at once: an event finds the consumer with its endpoints or neither. Its uid is free from then on.
 */
export async function deleteConsumer(
  tx: TenantTransaction,
  tenantId: string,
  reference: ConsumerReference,
  options: { readonly expects: VersionExpectation },
): Promise<readonly string[]> {
  const { id } = await lockConsumer(tx, tenantId, reference, 'pessimistic_write', options.expects);
  const values = [tenantId, id];
  await tx.query({ text: BURY_CONSUMER, values });
  const { rows } = await tx.query<{ id: string }>({ text: BURY_ENDPOINTS, values });
  for (const text of [DELETE_SUBSCRIPTIONS, DELETE_CIRCUITS, DELETE_RATE_TOKENS])
    await tx.query({ text, values });
  return rows.map((row) => row.id);
}
