import type { Queryable } from '#runtime';
import type { EndpointRef } from './types.js';

/** Leased rows are left to their worker: what is in flight is recorded, and cancelled on a later turn if still owed. */
const CANCEL_DELETED = `
with picked as materialized (
  select q.ctid as place
  from waybill.delivery_queue q
  join waybill.endpoints p on p.tenant_id = q.tenant_id and p.id = q.endpoint_id
  where q.tenant_id = $1
    and q.endpoint_id = $2
    and q.lease_until is null
    and p.deleted_at is not null
  limit $3
  for update of q skip locked
),
removed as (
  delete from waybill.delivery_queue q
  where q.tenant_id = $1
    and q.ctid = any (array(select place from picked))
  returning q.tenant_id, q.event_id, q.endpoint_id, q.attempt_count, q.cycle_attempt_count
),
cancelled as (
  update waybill.deliveries d
  set state = 'cancelled', finished_at = now(), attempt_count = r.attempt_count, cycle_attempt_count = r.cycle_attempt_count
  from removed r
  where d.tenant_id = $1
    and d.event_id = r.event_id
    and d.endpoint_id = r.endpoint_id
)
select count(*)::integer as cancelled from removed
`;

/** Cancels what is still owed to a deleted endpoint, at most `limit` deliveries; fewer means that nothing free is left. */
export async function cancelDeleted(db: Queryable, endpoint: EndpointRef, limit: number): Promise<number> {
  const { rows } = await db.query<{ cancelled: number }>({
    name: 'cancel-deleted',
    text: CANCEL_DELETED,
    values: [endpoint.tenantId, endpoint.endpointId, limit],
  });
  return rows[0]!.cancelled;
}
