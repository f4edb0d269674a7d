import type { Queryable } from '#runtime';
import type { SettledAttempt } from './types.js';

/** The batch's columns; the arrays stand in each write itself, since a join of two CTEs by id planned 3–5 times slower. */
const SETTLED = `unnest($2::uuid[], $3::uuid[], $4::uuid[], $5::uuid[], $6::integer[], $7::text[], $8::double precision[], $9::text[],
    $10::integer[], $11::text[])
    as o (tenant_id, event_id, endpoint_id, claim_token, number, state, retry_in_ms, dead_reason, status_code, error_kind)`;

const SAME_CLAIM = `q.tenant_id = any($1)
    and q.tenant_id = o.tenant_id
    and q.event_id = o.event_id
    and q.endpoint_id = o.endpoint_id
    and q.claim_token = o.claim_token`;

/**
 * Records a batch of attempts. State is fenced: only the claim whose token still stands may move its delivery.
 * History is not: a request that was made is written under the number its claim gave it, whoever holds the lease by
 * now; a late result replaces a \`lease_expired\` that reap wrote for it, and nothing else. Asked again after a lost
 * reply, it changes nothing. The queue is locked before deliveries, here as everywhere.
 */
const RECORD_ATTEMPTS = `
with written as (
  insert into waybill.attempts (tenant_id, event_id, endpoint_id, number, outcome, status_code, error_kind, error,
    response_body, endpoint_revision, started_at, duration_ms)
  select a.tenant_id, a.event_id, a.endpoint_id, a.number, a.outcome, a.status_code, a.error_kind, a.error,
    a.response_body, a.endpoint_revision, to_timestamp(a.started_at_ms / 1000), a.duration_ms
  from unnest($2::uuid[], $3::uuid[], $4::uuid[], $6::integer[], $12::text[], $10::integer[], $11::text[], $13::text[],
    $14::bytea[], $15::integer[], $16::double precision[], $17::double precision[])
    as a (tenant_id, event_id, endpoint_id, number, outcome, status_code, error_kind, error,
      response_body, endpoint_revision, started_at_ms, duration_ms)
  on conflict (tenant_id, event_id, endpoint_id, number) do update
  set outcome = excluded.outcome, status_code = excluded.status_code, error_kind = excluded.error_kind,
    error = excluded.error, response_body = excluded.response_body, started_at = excluded.started_at,
    duration_ms = excluded.duration_ms, recorded_at = excluded.recorded_at
  where attempts.outcome = 'lease_expired' and excluded.outcome <> 'lease_expired'
),
finished as (
  delete from waybill.delivery_queue q
  using ${SETTLED}
  where ${SAME_CLAIM}
    and o.state in ('succeeded', 'dead')
  returning q.tenant_id, q.event_id, q.endpoint_id, q.delivery_id, q.attempt_count, q.cycle_attempt_count,
    o.state, o.dead_reason, o.status_code, o.error_kind
),
rescheduled as (
  update waybill.delivery_queue q
  set due_at = now() + o.retry_in_ms * interval '1 millisecond', lease_until = null, claim_token = null
  from ${SETTLED}
  where ${SAME_CLAIM}
    and o.state = 'failed'
  returning q.tenant_id, q.event_id, q.endpoint_id, q.delivery_id, q.attempt_count, q.cycle_attempt_count,
    o.state, o.dead_reason, o.status_code, o.error_kind
),
moved as (
  select * from finished
  union all
  select * from rescheduled
),
updated as (
  update waybill.deliveries d
  set state = m.state, attempt_count = m.attempt_count, cycle_attempt_count = m.cycle_attempt_count,
    last_status_code = m.status_code, last_error_kind = m.error_kind,
    finished_at = case when m.state = 'failed' then null else now() end
  from moved m
  where d.tenant_id = any($1)
    and d.tenant_id = m.tenant_id
    and d.event_id = m.event_id
    and d.endpoint_id = m.endpoint_id
),
buried as (
  insert into waybill.dead_letters (tenant_id, event_id, endpoint_id, delivery_id, reason, attempt_count, died_at)
  select tenant_id, event_id, endpoint_id, delivery_id, dead_reason, attempt_count, now()
  from finished
  where state = 'dead'
  on conflict (tenant_id, event_id, endpoint_id) do update
  set reason = excluded.reason, attempt_count = excluded.attempt_count, died_at = excluded.died_at, resolved_at = null
)
select delivery_id, attempt_count, state from moved
`;

/**
 * Writes the attempts and moves the deliveries whose claim still stands, in one statement. Returns the delivery ids
 * it moved; an attempt that is missing from them came too late: its history is kept, its delivery belongs to another
 * claim.
 */
export async function recordAttempts(
  db: Queryable,
  settled: readonly SettledAttempt[],
): Promise<ReadonlySet<string>> {
  if (settled.length === 0) return new Set();
  // One order for every batch, so that two of them never lock the same rows crosswise.
  const sorted = settled.toSorted(byKey);
  const { rows } = await db.query<{ delivery_id: string }>({
    name: 'record-attempts',
    text: RECORD_ATTEMPTS,
    values: toColumns(sorted),
  });
  return new Set(rows.map((row) => row.delivery_id));
}

function byKey(a: SettledAttempt, b: SettledAttempt): number {
  return (
    compare(a.tenantId, b.tenantId) || compare(a.eventId, b.eventId) || compare(a.endpointId, b.endpointId)
  );
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function toColumns(settled: readonly SettledAttempt[]): unknown[] {
  const tenants = settled.map((item) => item.tenantId);
  return [
    [...new Set(tenants)],
    tenants,
    settled.map((item) => item.eventId),
    settled.map((item) => item.endpointId),
    settled.map((item) => item.claimToken),
    settled.map((item) => item.attemptNumber),
    settled.map((item) => item.outcome.state),
    settled.map((item) => (item.outcome.state === 'failed' ? item.outcome.retryInMs : null)),
    settled.map((item) => (item.outcome.state === 'dead' ? item.outcome.reason : null)),
    settled.map((item) => item.attempt.statusCode),
    settled.map((item) => item.attempt.errorKind),
    settled.map((item) => item.attempt.outcome),
    settled.map((item) => item.attempt.error),
    settled.map((item) => item.attempt.responseBody),
    settled.map((item) => item.endpointRevision),
    settled.map((item) => item.attempt.startedAtMs),
    settled.map((item) => item.attempt.durationMs),
  ];
}
