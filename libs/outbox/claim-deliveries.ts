import type { Queryable } from '#runtime';
import { plainArray } from './array-text.js';
import { toClaim, type ClaimRow } from './claim-row.js';
import type { Claim, EndpointRef } from './types.js';

/**
 * Takes up to `quota` due rows of each chosen endpoint under one fresh token, as far as the endpoint may be delivered to.
 *
 *   free --claim--> leased --record--> gone, or free again with a later due_at
 *                     \\--lease lapses--> still leased until reap frees it, by token
 *
 * Only rows without a lease are taken: reap alone frees a lapsed one, so a delivery that kills its worker keeps its
 * backoff and its limit. \`picked\` is MATERIALIZED and the update goes by ctid: written as a join the planner took
 * \`picked\` for large and read the whole table (360–420 ms against 2.5), and an \`in (… limit)\` claimed more rows
 * than its limit under stale statistics. The bounds are rows (endpoint_id, due_at), which only the index
 * delivery_queue_claim can serve: written column by column the planner walked the discovery index from its oldest
 * entry for every endpoint (1,270 µs a delivery against 40). Events are looked up one by one (`offset 0` keeps it so):
 * before the first ANALYZE the planner joined events by tenant alone and read all of a tenant's for each delivery. The
 * attempt is counted here, not when it is recorded.
 *
 * A held endpoint's rows are neither read nor written: \`allowed\` is 0. One whose circuit is open and whose window has
 * passed lends one row as the probe, to exactly one claim of all replicas (\`free_to_probe\` locks the circuit's row), and
 * not the row that failed the last probe if another is due. Rate tokens are locked before they are counted, and written
 * once a claim. Rows of circuits and tokens that somebody else has locked are passed over, never waited for: a claim is
 * made for many tenants, and one of them editing an endpoint held up all the others.
 */
const CLAIM_DELIVERIES = `
with asked as materialized (
  select c.tenant_id, c.endpoint_id, c.quota, c.watermark_ms,
    case
      when p.deleted_at is not null or p.status <> 'enabled' or t.suspended_at is not null
        or x.gone_at is not null then 'held'
      when x.held_until > now() then 'waiting'
      when coalesce(x.state, 'closed') = 'closed' or coalesce(p.circuit_failures, $10::integer) = 0 then 'ready'
      when greatest(x.open_until, x.probe_until) > now() then 'open'
      else 'probe'
    end as standing,
    date_part('epoch', greatest(x.open_until, x.probe_until, x.held_until) - now()) * 1000 as hold_ms,
    -- The cap doubles each second after a circuit closed: a paced drain, not a herd.
    case when x.closed_at between now() - interval '10 seconds' and now()
      then power(2, floor(extract(epoch from now() - x.closed_at)))::integer end as recovering_cap,
    -- greatest() alone would make 1 of a null.
    p.rate_per_second as rate, case when p.rate_per_second is not null then greatest(p.rate_per_second, 1) end as burst,
    k.tokens is not null as has_tokens, x.probe_event_id,
    case when p.concurrency is not null then greatest(p.concurrency / $9::integer, 1) end as cap,
    p.url, p.revision, p.secrets_version, p.concurrency, p.connect_timeout_ms, p.attempt_timeout_ms,
    p.circuit_failures, p.circuit_failure_ratio, p.circuit_open_ms, p.retry
  from unnest($2::uuid[], $3::uuid[], $4::integer[], $5::double precision[]) as c (tenant_id, endpoint_id, quota, watermark_ms)
  join waybill.endpoints p on p.tenant_id = any($1) and p.tenant_id = c.tenant_id and p.id = c.endpoint_id
  join waybill.tenants t on t.id = any($1) and t.id = c.tenant_id
  left join waybill.circuits x on x.tenant_id = any($1) and x.tenant_id = c.tenant_id and x.endpoint_id = c.endpoint_id
  left join waybill.rate_tokens k on k.tenant_id = any($1) and k.tenant_id = c.tenant_id and k.endpoint_id = c.endpoint_id
),
metered as materialized (
  select r.tenant_id, r.endpoint_id,
    case
      -- The database's clock stepped back, as after a failover: nobody knows, so it is full.
      when r.refilled_at > now() + interval '1 second' then a.burst
      else least(a.burst, r.tokens + greatest(date_part('epoch', now() - r.refilled_at), 0) * a.rate)
    end as tokens
  from asked a
  join waybill.rate_tokens r on r.tenant_id = any($1) and r.tenant_id = a.tenant_id and r.endpoint_id = a.endpoint_id
  where a.rate is not null and a.standing in ('ready', 'probe')
  order by r.tenant_id, r.endpoint_id
  for update of r skip locked
),
granted as materialized (
  select a.*, m.tokens,
    case
      when a.standing = 'probe' then 1
      when a.standing <> 'ready' then 0
      when a.rate is null then least(a.quota, a.cap, a.recovering_cap)
      -- No row yet: two first claims would each take a whole burst, so this one makes it and the next one takes. Or
      -- somebody holds it at this moment.
      when m.tokens is null then 0
      else least(a.quota, a.cap, a.recovering_cap, floor(m.tokens)::integer)
    end as allowed
  from asked a
  left join metered m on m.tenant_id = a.tenant_id and m.endpoint_id = a.endpoint_id
),
found as materialized (
  select due.place, due.due_at, due.payload_bytes, due.event_id, g.tenant_id, g.endpoint_id, g.standing, g.probe_event_id
  from granted g
  cross join lateral (
    select q.ctid as place, q.due_at, q.payload_bytes, q.event_id
    from waybill.delivery_queue q
    where q.tenant_id = any($1)
      and q.tenant_id = g.tenant_id
      and (q.endpoint_id, q.due_at) >= (g.endpoint_id, to_timestamp(g.watermark_ms / 1000))
      and (q.endpoint_id, q.due_at) <= (g.endpoint_id, now())
      and q.lease_until is null
    order by q.endpoint_id, q.due_at
    limit case g.standing when 'probe' then 2 else g.allowed end
    for update skip locked
  ) due
  where g.allowed > 0
),
free_to_probe as materialized (
  select x.tenant_id, x.endpoint_id, f.event_id, f.place
  from (
    select distinct on (tenant_id, endpoint_id) tenant_id, endpoint_id, event_id, place
    from found
    where standing = 'probe'
    order by tenant_id, endpoint_id, (event_id = probe_event_id) nulls first, due_at
  ) f
  join waybill.circuits x on x.tenant_id = any($1) and x.tenant_id = f.tenant_id and x.endpoint_id = f.endpoint_id
  where x.state = 'open'
    and x.open_until <= now()
    and (x.probe_until is null or x.probe_until <= now())
  for update of x skip locked
),
probing as (
  update waybill.circuits y
  set probe_token = $6, probe_until = now() + $7 * interval '1 millisecond', probe_event_id = f.event_id
  from free_to_probe f
  where y.tenant_id = any($1)
    and y.tenant_id = f.tenant_id
    and y.endpoint_id = f.endpoint_id
  returning f.place
),
picked as materialized (
  select place
  from (
    select place, coalesce(sum(payload_bytes) over (
      order by due_at, place rows between unbounded preceding and 1 preceding), 0) as bytes_before
    from found
    where standing = 'ready'
  ) measured
  where bytes_before < $8
  union all
  select place from probing
),
claimed as (
  update waybill.delivery_queue q
  set lease_until = now() + $7 * interval '1 millisecond',
    claim_token = $6,
    -- An int that is full stays full: a count near 2^31, set by SQL, must not fail the claim of everybody else.
    attempt_count = least(q.attempt_count, 2147483646) + 1,
    cycle_attempt_count = least(q.cycle_attempt_count, 2147483646) + 1
  where q.tenant_id = any($1)
    and q.ctid = any (array(select place from picked))
    and q.lease_until is null
  returning q.*
),
spent as (
  update waybill.rate_tokens u
  set tokens = greatest(g.tokens - n.taken, 0),
    refilled_at = case when u.refilled_at > now() + interval '1 second' then now() else greatest(u.refilled_at, now()) end
  from granted g
  join (select tenant_id, endpoint_id, count(*) as taken from claimed group by tenant_id, endpoint_id) n
    on n.tenant_id = g.tenant_id and n.endpoint_id = g.endpoint_id
  where g.rate is not null
    and u.tenant_id = any($1)
    and u.tenant_id = g.tenant_id
    and u.endpoint_id = g.endpoint_id
    -- The one probe of an endpoint goes whether or not its tokens could be locked.
    and g.tokens is not null
),
metering as (
  insert into waybill.rate_tokens (tenant_id, endpoint_id, tokens, refilled_at)
  select g.tenant_id, g.endpoint_id, g.burst, now()
  from granted g
  where g.standing = 'ready' and g.rate is not null and not g.has_tokens
  order by g.tenant_id, g.endpoint_id
  on conflict (tenant_id, endpoint_id) do nothing
)
select null::uuid as tenant_id, c.endpoint_id, c.event_id, c.delivery_id, c.attempt_count, c.cycle_attempt_count,
  -- extract() makes a numeric first, and a text of that: 2 µs each.
  date_part('epoch', c.due_at) * 1000 as due_at_ms,
  date_part('epoch', c.expires_at) * 1000 as expires_at_ms,
  e.event_type, e.content_type, e.payload, null as standing
from claimed c
cross join lateral (
  select e.event_type, e.content_type, e.payload
  from waybill.events e
  where e.tenant_id = any($1) and e.tenant_id = c.tenant_id and e.id = c.event_id
  offset 0
) e
union all
select g.tenant_id, g.endpoint_id, null, null, null, null, null, null, null, null, null,
  json_build_object('standing', g.standing, 'allowed', g.allowed, 'hold_ms', g.hold_ms, 'tokens', g.tokens, 'rate', g.rate,
    'recovering_cap', g.recovering_cap, 'now_ms', date_part('epoch', clock_timestamp()) * 1000,
    'lease_until_ms', date_part('epoch', now()) * 1000 + $7, 'url', g.url, 'revision', g.revision,
    'secrets_version', g.secrets_version, 'concurrency', g.concurrency, 'retry', g.retry,
    'connect_timeout_ms', g.connect_timeout_ms, 'attempt_timeout_ms', g.attempt_timeout_ms,
    'circuit_failures', g.circuit_failures, 'circuit_failure_ratio', g.circuit_failure_ratio,
    'circuit_open_ms', g.circuit_open_ms)
from granted g
`;

/**
 * Payloads travel with the claim, so it stops at this many bytes (and always takes one delivery): 128 payloads of 256 KiB
 * over 60 Mbit/s outlasted the statement timeout, and the same claim was asked for again for ever.
 */
export const CLAIM_BYTES_MAX = 4_194_304;

/** How many rows of an endpoint a claim may take, and from which due time on it looks. */
export interface ClaimQuota extends EndpointRef {
  readonly quota: number;
  /** Milliseconds of the database's clock; 0 looks at everything. */
  readonly watermarkMs: number;
}

/**
 * Claims due deliveries of the chosen endpoints, at most each one's quota and no more than its rate and circuit allow, and
 * commits: nothing stays open. No two claims ever hold the same delivery, and of an endpoint whose circuit is open no
 * two hold any. An endpoint's own cap is divided by `replicas`, the dispatchers that share it (1 if not told).
 */
export async function claimDeliveries(
  db: Queryable,
  quotas: readonly ClaimQuota[],
  options: {
    readonly claimToken: string;
    readonly leaseMs: number;
    readonly replicas?: number;
    /** The platform's threshold: endpoints without their own have no circuit where it is 0. */
    readonly circuitFailures?: number;
  },
): Promise<Claim> {
  const tenants = quotas.map((quota) => quota.tenantId);
  const { rows } = await db.query<ClaimRow>({
    name: 'claim-deliveries',
    text: CLAIM_DELIVERIES,
    values: [
      plainArray([...new Set(tenants)]),
      plainArray(tenants),
      plainArray(quotas.map((quota) => quota.endpointId)),
      plainArray(quotas.map((quota) => quota.quota)),
      plainArray(quotas.map((quota) => quota.watermarkMs)),
      options.claimToken,
      options.leaseMs,
      CLAIM_BYTES_MAX,
      options.replicas ?? 1,
      options.circuitFailures ?? 5,
    ],
  });
  return toClaim(rows, options.claimToken);
}
