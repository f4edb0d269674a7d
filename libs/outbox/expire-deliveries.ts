import type { Queryable } from '#runtime';

/**
 * Debts end: what is still owed after its time dies, wherever it waits, behind a paused endpoint too. Rows under a
 * lease are left to their worker. The table is walked in block ranges like the lapsed leases, for the same reason.
 */
const EXPIRE_DELIVERIES = `
with picked as materialized (
  select q.ctid as place
  from waybill.delivery_queue q
  where q.ctid >= format('(%s,0)', $1::bigint)::tid
    and q.ctid < format('(%s,0)', $2::bigint)::tid
    and q.lease_until is null
    and q.expires_at < now()
  limit $3
  for update skip locked
),
removed as (
  delete from waybill.delivery_queue q
  where q.ctid = any (array(select place from picked))
  returning q.tenant_id, q.event_id, q.endpoint_id, q.delivery_id, q.attempt_count, q.cycle_attempt_count
),
ended as (
  update waybill.deliveries d
  set state = 'dead', finished_at = now(), attempt_count = r.attempt_count, cycle_attempt_count = r.cycle_attempt_count
  from removed r
  where d.tenant_id = r.tenant_id
    and d.event_id = r.event_id
    and d.endpoint_id = r.endpoint_id
),
buried as (
  insert into waybill.dead_letters (tenant_id, event_id, endpoint_id, delivery_id, reason, attempt_count, died_at)
  select tenant_id, event_id, endpoint_id, delivery_id, 'expired', attempt_count, now()
  from removed
  on conflict (tenant_id, event_id, endpoint_id) do update
  set reason = excluded.reason, attempt_count = excluded.attempt_count, died_at = excluded.died_at, resolved_at = null
),
announced as (
  insert into waybill.announcements (tenant_id, event_type, subject_id, endpoint_id, event_id, reason, created_at)
  select r.tenant_id, 'waybill.delivery.dead', r.delivery_id, r.endpoint_id, r.event_id, 'expired', now()
  from removed r
  join waybill.events e on e.tenant_id = r.tenant_id and e.id = r.event_id
  join waybill.subscriptions s on s.tenant_id = r.tenant_id and s.addressee_id = r.tenant_id and s.event_type = 'waybill.delivery.dead'
  where e.event_type not like 'waybill.%'
  on conflict (tenant_id, event_type, subject_id) do nothing
)
select count(*)::integer as expired from removed
`;

/** Ends the debts in blocks [from, until) whose time is over, at most `limit`, as dead letters with reason `expired`. */
export async function expireDeliveries(
  db: Queryable,
  blocks: { readonly from: number; readonly until: number },
  limit: number,
): Promise<number> {
  const { rows } = await db.query<{ expired: number }>({
    name: 'expire-deliveries',
    text: EXPIRE_DELIVERIES,
    values: [blocks.from, blocks.until, limit],
  });
  return rows[0]!.expired;
}
