/** One statement for one outcome: the attempt's row and the delivery's state, as the product stores them. */
const RECORD_ATTEMPT = `
with written as (
  insert into waybill.attempts (tenant_id, event_id, endpoint_id, number, outcome, status_code, endpoint_revision,
    started_at, duration_ms)
  values ($1, $2, $3, 1, $4, $5, 1, to_timestamp($6::double precision / 1000), $7)
)
update waybill.deliveries
set state = case when $4 = 'succeeded' then 'succeeded' else 'failed' end, attempt_count = 1, cycle_attempt_count = 1,
  last_status_code = $5, finished_at = case when $4 = 'succeeded' then now() end
where tenant_id = $1 and event_id = $2 and endpoint_id = $3`;

/** Records one attempt on `db`: a pool commits it, a client leaves it to its transaction. */
export function recordAttempt(db, job, { status, startedAtMs, durationMs }) {
  return db.query({
    name: 'record-attempt',
    text: RECORD_ATTEMPT,
    values: [
      job.tenantId,
      job.eventId,
      job.endpointId,
      status >= 200 && status <= 299 ? 'succeeded' : 'failed',
      status,
      startedAtMs,
      durationMs,
    ],
  });
}
