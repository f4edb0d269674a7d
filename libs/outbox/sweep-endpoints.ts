import type { Queryable } from '#runtime';
import type { EndpointRef } from './types.js';

/**
 * One step of a loose walk over the endpoints that are owed anything (about 8 µs each, and 8 more to ask for what is
 * due): the safety net under discovery for late commits, resumed endpoints and a fresh start. Of a held endpoint not one
 * row is read beyond that it has some.
 */
const SWEEP_ENDPOINTS = `
with recursive walk as (
  (select q.tenant_id, q.endpoint_id
   from waybill.delivery_queue q
   where (q.tenant_id, q.endpoint_id) > ($1, $2)
   order by q.tenant_id, q.endpoint_id
   limit 1)
  union all
  select following.tenant_id, following.endpoint_id
  from walk w
  cross join lateral (
    select q.tenant_id, q.endpoint_id
    from waybill.delivery_queue q
    where (q.tenant_id, q.endpoint_id) > (w.tenant_id, w.endpoint_id)
    order by q.tenant_id, q.endpoint_id
    limit 1
  ) following
),
step as (
  select * from walk limit $3
)
select s.tenant_id, s.endpoint_id, p.deleted_at is not null as deleted,
  case when p.status = 'enabled' and p.deleted_at is null and coalesce(greatest(x.open_until, x.held_until), now()) <= now() then (
    select date_part('epoch', q.due_at) * 1000
    from waybill.delivery_queue q
    where q.tenant_id = s.tenant_id
      and q.endpoint_id = s.endpoint_id
      and q.due_at <= now()
      and q.lease_until is null
    order by q.due_at
    limit 1
  ) end as due_at_ms
from step s
join waybill.endpoints p on p.tenant_id = s.tenant_id and p.id = s.endpoint_id
left join waybill.circuits x on x.tenant_id = s.tenant_id and x.endpoint_id = s.endpoint_id
order by s.tenant_id, s.endpoint_id
`;

export interface SweptEndpoint extends EndpointRef {
  /** When its oldest free delivery fell due, in milliseconds of the database's clock; null when none may be claimed now. */
  readonly dueAtMs: number | null;
  readonly deleted: boolean;
}

/** Walks at most `limit` endpoints with queue rows, in key order after `after`; fewer than `limit` means the round is over. */
export async function sweepEndpoints(
  db: Queryable,
  after: EndpointRef,
  limit: number,
): Promise<readonly SweptEndpoint[]> {
  const { rows } = await db.query<{
    tenant_id: string;
    endpoint_id: string;
    due_at_ms: number | null;
    deleted: boolean;
  }>({
    name: 'sweep-endpoints',
    text: SWEEP_ENDPOINTS,
    values: [after.tenantId, after.endpointId, limit],
  });
  return rows.map((row) => ({
    tenantId: row.tenant_id,
    endpointId: row.endpoint_id,
    dueAtMs: row.due_at_ms,
    deleted: row.deleted,
  }));
}
