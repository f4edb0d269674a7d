import type { Queryable } from '#runtime';
import { HOLDS } from './delivery-row.js';

const MEASURE_QUEUE = `
select
  count(*) filter (where q.lease_until is not null)::double precision as in_progress,
  count(*) filter (where q.lease_until is null and not h.holds and q.attempt_count = 0)::double precision as pending,
  count(*) filter (where q.lease_until is null and not h.holds and q.attempt_count > 0)::double precision as failed,
  count(*) filter (where q.lease_until is null and h.holds)::double precision as held,
  count(*) filter (where q.lease_until is null and q.due_at <= now() and not h.holds)::double precision as due,
  coalesce(extract(epoch from now() - min(q.due_at) filter (
    where q.lease_until is null and q.due_at <= now() and not h.holds)), 0)::double precision as oldest_due_age_seconds,
  (select count(*) from waybill.dead_letters where resolved_at is null)::double precision as dead
from waybill.delivery_queue q
join waybill.tenants t on t.id = q.tenant_id
join waybill.endpoints p on p.tenant_id = q.tenant_id and p.id = q.endpoint_id
left join waybill.circuits c on c.tenant_id = q.tenant_id and c.endpoint_id = q.endpoint_id
cross join lateral (select ${HOLDS} as holds) h
`;

/** What is owed at this moment; `due` and its oldest age leave out what an endpoint holds back. */
export interface QueueMeasure {
  readonly pending: number;
  readonly failed: number;
  readonly inProgress: number;
  /** Owed, but behind a paused or disabled endpoint, an open circuit, a Retry-After, or a suspended tenant. */
  readonly held: number;
  readonly dead: number;
  readonly due: number;
  readonly oldestDueAgeSeconds: number;
}

/** Counts the queue once. It reads the whole hot table: ask seldom, and keep the answer. */
export async function measureQueue(db: Queryable): Promise<QueueMeasure> {
  const { rows } = await db.query<{
    pending: number;
    failed: number;
    in_progress: number;
    held: number;
    dead: number;
    due: number;
    oldest_due_age_seconds: number;
  }>({ text: MEASURE_QUEUE });
  const row = rows[0]!;
  return {
    pending: row.pending,
    failed: row.failed,
    inProgress: row.in_progress,
    held: row.held,
    dead: row.dead,
    due: row.due,
    oldestDueAgeSeconds: row.oldest_due_age_seconds,
  };
}
