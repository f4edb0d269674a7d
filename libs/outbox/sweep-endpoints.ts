import type { Queryable } from '#runtime';
import type { EndpointRef } from './types.js';

/**
 * One step of a loose walk over the endpoints that are owed anything (about 8 µs each, and 8 more to ask whether
 * something is due): the safety net under discovery for late commits, resumed endpoints and a fresh start.
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
  p.status = 'enabled' and exists (
    select from waybill.delivery_queue q
    where q.tenant_id = s.tenant_id
      and q.endpoint_id = s.endpoint_id
      and q.due_at <= now()
      and q.lease_until is null
  ) as due
from step s
join waybill.endpoints p on p.tenant_id = s.tenant_id and p.id = s.endpoint_id
order by s.tenant_id, s.endpoint_id
`;

export interface SweptEndpoint extends EndpointRef {
  readonly due: boolean;
  readonly deleted: boolean;
}

/** Walks at most `limit` endpoints with queue rows, in key order after `after`; fewer than `limit` means the round is over. */
export async function sweepEndpoints(
  db: Queryable,
  after: EndpointRef,
  limit: number,
): Promise<readonly SweptEndpoint[]> {
  const { rows } = await db.query<{ tenant_id: string; endpoint_id: string; due: boolean; deleted: boolean }>(
    {
      name: 'sweep-endpoints',
      text: SWEEP_ENDPOINTS,
      values: [after.tenantId, after.endpointId, limit],
    },
  );
  return rows.map((row) => ({
    tenantId: row.tenant_id,
    endpointId: row.endpoint_id,
    due: row.due,
    deleted: row.deleted,
  }));
}
