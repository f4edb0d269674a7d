import { sqlState, type Queryable } from '#runtime';
import { arrayItems, plainArray, quotedArray } from './array-text.js';
import { circuitLessons, type CircuitLesson } from './circuit-lessons.js';
import type { EndpointRef, SettledAttempt } from './types.js';

/** The batch's columns; the arrays stand in each write itself, since a join of two CTEs by id planned 3–5 times slower. */
const SETTLED = `unnest($2::uuid[], $3::uuid[], $4::uuid[], $5::uuid[], $7::text[], $8::double precision[], $9::text[],
    $10::integer[], $11::text[])
    as o (tenant_id, event_id, endpoint_id, claim_token, state, retry_in_ms, dead_reason, status_code, error_kind)`;

/** So that a statement opens the partitions of its days and no others: with sixteen of each table, 1 ms a record. */
const OF_THESE_DAYS = 'between $29 and $30';

const SAME_CLAIM = `q.tenant_id = any($1)
    and q.tenant_id = o.tenant_id
    and q.event_id = o.event_id
    and q.endpoint_id = o.endpoint_id
    and q.claim_token = o.claim_token`;

/**
 * Records a batch of attempts. State is fenced: only the claim whose token still stands may move its delivery.
 * History is not: a request that was made is written under the number its claim gave it, whoever holds the lease by
 * now; a late result replaces a \`lease_expired\` that reap wrote for it, and nothing else. Of a deleted tenant no history
 * is kept. Asked again after a lost reply, it changes nothing but counts a failure twice at its endpoint's circuit. The queue is locked before deliveries,
 * here as everywhere, and circuits last, in the order of their keys.
 *
 *   closed --failures in a row reach the threshold, or the ratio is reached--> open until open_until
 *     --window over, one claim takes the probe--> half-open (probe_token) --probe succeeds--> closed
 *                                                                        \\--probe fails--> open again
 *
 * While a circuit is open only its probe's own result moves it: what was in flight when it opened comes too late. A
 * success writes only where something stands to be taken back.
 */
const recordStatement = (onConflict: string): string => `
with written as (
  insert into waybill.attempts (tenant_id, event_id, endpoint_id, number, outcome, status_code, error_kind, error,
    response_body, endpoint_revision, started_at, duration_ms)
  select a.tenant_id, a.event_id, a.endpoint_id, a.number, a.outcome, a.status_code, a.error_kind, a.error,
    a.response_body, a.endpoint_revision, to_timestamp(a.started_at_ms / 1000), a.duration_ms
  from unnest($2::uuid[], $3::uuid[], $4::uuid[], $6::integer[], $12::text[], $10::integer[], $11::text[], $13::text[],
    $14::bytea[], $15::integer[], $16::double precision[], $17::double precision[])
    as a (tenant_id, event_id, endpoint_id, number, outcome, status_code, error_kind, error,
      response_body, endpoint_revision, started_at_ms, duration_ms)
  join waybill.tenants t on t.id = any($1) and t.id = a.tenant_id and t.deleted_at is null
  ${onConflict}
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
    -- Without one nothing of this is run.
    and $31::boolean
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
    and d.event_id ${OF_THESE_DAYS}
),
buried as (
  insert into waybill.dead_letters (tenant_id, event_id, endpoint_id, delivery_id, reason, attempt_count, died_at)
  select tenant_id, event_id, endpoint_id, delivery_id, dead_reason, attempt_count, now()
  from finished
  where state = 'dead'
  on conflict (tenant_id, event_id, endpoint_id) do update
  set reason = excluded.reason, attempt_count = excluded.attempt_count, died_at = excluded.died_at, resolved_at = null
),
judged as materialized (
  select l.*, x.state, x.failing_since, x.open_until, x.probe_token = l.probe_token as probed,
    case when l.succeeded and x.state = 'closed' then 0 else x.consecutive_failures end + l.failures as failures_in_a_row
  from unnest($18::uuid[], $19::uuid[], $20::boolean[], $21::integer[], $22::integer[], $23::double precision[],
      $24::boolean[], $25::double precision[], $26::boolean[], $27::uuid[], $28::boolean[])
    as l (tenant_id, endpoint_id, succeeded, failures, threshold, open_ms, tripped, hold_ms, gone, probe_token, probe_succeeded)
  join waybill.circuits x on x.tenant_id = any($1) and x.tenant_id = l.tenant_id and x.endpoint_id = l.endpoint_id
  where l.failures > 0 or x.consecutive_failures > 0 or x.failing_since is not null or x.state = 'open'
    -- A success at the end of the batch takes nothing of this back.
    or l.hold_ms is not null or l.gone or l.tripped
  order by x.tenant_id, x.endpoint_id
  for update of x
),
verdicts as materialized (
  select j.*,
    case
      when j.state = 'open' and j.threshold = 0 then 'ends'
      when j.state = 'open' and j.probed and j.probe_succeeded then 'closes'
      when j.state = 'open' and j.probed then 'reopens'
      when j.state = 'closed' and j.threshold > 0 and (j.tripped or j.failures_in_a_row >= j.threshold) then 'opens'
      else 'stays'
    end as verdict
  from judged j
),
learned as (
  update waybill.circuits x
  set state = case when v.verdict in ('opens', 'reopens') then 'open' when v.verdict in ('closes', 'ends') then 'closed' else x.state end,
    consecutive_failures = case v.verdict when 'closes' then 0 else v.failures_in_a_row end,
    failing_since = case
      when v.succeeded and v.failures = 0 then null
      when v.succeeded then now()
      else coalesce(v.failing_since, now())
    end,
    last_failed_at = case when v.failures > 0 then now() else x.last_failed_at end,
    open_until = case
      when v.verdict in ('opens', 'reopens') then now() + v.open_ms * interval '1 millisecond'
      when v.verdict = 'stays' then x.open_until
    end,
    closed_at = case v.verdict when 'closes' then now() else x.closed_at end,
    probe_token = case v.verdict when 'stays' then x.probe_token end,
    probe_until = case v.verdict when 'stays' then x.probe_until end,
    held_until = greatest(x.held_until, now() + v.hold_ms * interval '1 millisecond'),
    gone_at = case when v.gone then now() else x.gone_at end
  from verdicts v
  where x.tenant_id = any($1)
    and x.tenant_id = v.tenant_id
    and x.endpoint_id = v.endpoint_id
  returning x.tenant_id, x.endpoint_id, v.verdict
),
announced as (
  insert into waybill.announcements (tenant_id, event_type, subject_id, endpoint_id, event_id, reason, created_at)
  select a.*, now()
  from (
    select f.tenant_id, 'waybill.delivery.dead' as event_type, f.delivery_id, f.endpoint_id, f.event_id, f.dead_reason
    from finished f
    join waybill.events e on e.tenant_id = any($1) and e.tenant_id = f.tenant_id and e.id = f.event_id
      and e.id ${OF_THESE_DAYS}
    where f.state = 'dead' and e.event_type not like 'waybill.%'
    union all
    select l.tenant_id, 'waybill.endpoint.recovered', l.endpoint_id, l.endpoint_id, null, null
    from learned l
    where l.verdict = 'closes'
  ) a
  where exists (
    select from waybill.subscriptions s
    where s.tenant_id = any($1) and s.tenant_id = a.tenant_id and s.addressee_id = a.tenant_id and s.event_type = a.event_type
  )
  on conflict (tenant_id, event_type, subject_id) do nothing
)
select array_agg(delivery_id)::text as moved, null::uuid as tenant_id, null::uuid as endpoint_id, null as verdict from moved
union all
select null, tenant_id, endpoint_id, verdict from learned where verdict <> 'stays'
`;

/** Nearly every attempt is new, and looking for an older one of its number first costs a write and four reads each. */
const RECORD_NEW_ATTEMPTS = recordStatement('');
const RECORD_ATTEMPTS = recordStatement(`on conflict (tenant_id, event_id, endpoint_id, number) do update
  set outcome = excluded.outcome, status_code = excluded.status_code, error_kind = excluded.error_kind,
    error = excluded.error, response_body = excluded.response_body, started_at = excluded.started_at,
    duration_ms = excluded.duration_ms, recorded_at = excluded.recorded_at
  where attempts.outcome = 'lease_expired' and excluded.outcome <> 'lease_expired'`);
const UNIQUE_VIOLATION = '23505';

/** A circuit that changed: \`opens\` and \`reopens\` for a while, \`closes\` after a probe, or \`ends\` since the endpoint has none any more. */
export interface CircuitChange extends EndpointRef {
  readonly verdict: 'opens' | 'reopens' | 'closes' | 'ends';
}

/** What a record changed beyond the attempts it wrote. */
export interface Recorded {
  /** The deliveries that moved; one that is missing belongs to another claim by now, and only its history was kept. */
  readonly moved: ReadonlySet<string>;
  readonly circuits: readonly CircuitChange[];
}

/** The first row holds all ids of what moved, as an array's text: a row for each cost three times as much. */
type RecordedRow =
  | { readonly verdict: null; readonly moved: string | null }
  | { readonly verdict: CircuitChange['verdict']; readonly tenant_id: string; readonly endpoint_id: string };

const NOTHING: Recorded = { moved: new Set(), circuits: [] };

/**
 * Writes the attempts, moves the deliveries whose claim still stands, and takes in what it says of endpoints: one
 * statement, and a second one when an attempt was written before. Not for use inside a transaction.
 */
export async function recordAttempts(db: Queryable, settled: readonly SettledAttempt[]): Promise<Recorded> {
  if (settled.length === 0) return NOTHING;
  const lessons = circuitLessons(settled);
  // One order for every batch, so that two of them seldom lock the same rows crosswise: what is over comes before what is
  // tried again. Then one of them is written a second time.
  const sorted = settled.toSorted(byKey);
  const values = [...attemptColumns(sorted), ...lessonColumns(lessons), ...batchBounds(sorted)];
  const { rows } = await db
    .query<RecordedRow>({ name: 'record-new-attempts', text: RECORD_NEW_ATTEMPTS, values })
    .catch((error: unknown) => {
      if (sqlState(error) !== UNIQUE_VIOLATION) throw error;
      return db.query<RecordedRow>({ name: 'record-attempts', text: RECORD_ATTEMPTS, values });
    });
  const moved = new Set<string>();
  const circuits: CircuitChange[] = [];
  for (const row of rows) {
    if (row.verdict === null) for (const id of arrayItems(row.moved)) moved.add(id);
    else circuits.push({ tenantId: row.tenant_id, endpointId: row.endpoint_id, verdict: row.verdict });
  }
  return { moved, circuits };
}

function byKey(a: SettledAttempt, b: SettledAttempt): number {
  return (
    compare(a.tenantId, b.tenantId) || compare(a.eventId, b.eventId) || compare(a.endpointId, b.endpointId)
  );
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function attemptColumns(settled: readonly SettledAttempt[]): unknown[] {
  const tenants = settled.map((item) => item.tenantId);
  return [
    plainArray([...new Set(tenants)]),
    plainArray(tenants),
    plainArray(settled.map((item) => item.eventId)),
    plainArray(settled.map((item) => item.endpointId)),
    plainArray(settled.map((item) => item.claimToken)),
    plainArray(settled.map((item) => item.attemptNumber)),
    plainArray(settled.map((item) => item.outcome.state)),
    plainArray(settled.map((item) => (item.outcome.state === 'failed' ? item.outcome.retryInMs : null))),
    plainArray(settled.map((item) => (item.outcome.state === 'dead' ? item.outcome.reason : null))),
    plainArray(settled.map((item) => item.attempt.statusCode)),
    plainArray(settled.map((item) => item.attempt.errorKind)),
    plainArray(settled.map((item) => item.attempt.outcome)),
    quotedArray(settled.map((item) => item.attempt.error)),
    quotedArray(settled.map((item) => item.attempt.responseBody)),
    plainArray(settled.map((item) => item.endpointRevision)),
    plainArray(settled.map((item) => item.attempt.startedAtMs)),
    plainArray(settled.map((item) => item.attempt.durationMs)),
  ];
}

function lessonColumns(lessons: readonly CircuitLesson[]): unknown[] {
  return [
    plainArray(lessons.map((lesson) => lesson.tenantId)),
    plainArray(lessons.map((lesson) => lesson.endpointId)),
    plainArray(lessons.map((lesson) => lesson.succeeded)),
    plainArray(lessons.map((lesson) => lesson.failures)),
    plainArray(lessons.map((lesson) => lesson.threshold)),
    plainArray(lessons.map((lesson) => lesson.openMs)),
    plainArray(lessons.map((lesson) => lesson.tripped)),
    plainArray(lessons.map((lesson) => lesson.holdMs)),
    plainArray(lessons.map((lesson) => lesson.gone)),
    plainArray(lessons.map((lesson) => lesson.probeToken)),
    plainArray(lessons.map((lesson) => lesson.probeSucceeded)),
  ];
}

function batchBounds(settled: readonly SettledAttempt[]): unknown[] {
  const eventIds = settled.map((item) => item.eventId).toSorted();
  return [eventIds[0], eventIds.at(-1), settled.some((item) => item.outcome.state === 'failed')];
}
