import type { Queryable } from '#runtime';
import type { Claim, ClaimedDelivery, EndpointRef } from './types.js';

/**
 * Takes up to `quota` due rows of each chosen endpoint under one fresh token.
 *
 *   free --claim--> leased --record--> gone, or free again with a later due_at
 *                     \\--lease lapses--> still leased until reap frees it, by token
 *
 * Only rows without a lease are taken: reap alone frees a lapsed one, so a delivery that kills its worker keeps its
 * backoff and its limit. \`picked\` is MATERIALIZED and the update goes by ctid: written as a join the planner took
 * \`picked\` for large and read the whole table (360–420 ms against 2.5), and an \`in (… limit)\` claimed more rows
 * than its limit under stale statistics. The bounds are rows (endpoint_id, due_at), which only the index
 * delivery_queue_claim can serve: written column by column the planner walked the discovery index from its oldest
 * entry for every endpoint (1,270 µs a delivery against 40). Events and endpoints are looked up one by one (`offset 0`
 * keeps it so): before the first ANALYZE the planner joined events by tenant alone and read all of a tenant's for each
 * delivery. The attempt is counted here, not when it is recorded.
 */
const CLAIM_DELIVERIES = `
with chosen as (
  select c.*
  from unnest($2::uuid[], $3::uuid[], $4::integer[], $5::double precision[]) as c (tenant_id, endpoint_id, quota, watermark_ms)
  join waybill.endpoints p on p.tenant_id = any($1) and p.tenant_id = c.tenant_id and p.id = c.endpoint_id
  where p.deleted_at is null and p.status = 'enabled'
),
found as (
  select due.place, due.due_at, due.payload_bytes
  from chosen c
  cross join lateral (
    select q.ctid as place, q.due_at, q.payload_bytes
    from waybill.delivery_queue q
    where q.tenant_id = any($1)
      and q.tenant_id = c.tenant_id
      and (q.endpoint_id, q.due_at) >= (c.endpoint_id, to_timestamp(c.watermark_ms / 1000))
      and (q.endpoint_id, q.due_at) <= (c.endpoint_id, now())
      and q.lease_until is null
    order by q.endpoint_id, q.due_at
    limit c.quota
    for update skip locked
  ) due
),
picked as materialized (
  select place
  from (
    select place, coalesce(sum(payload_bytes) over (
      order by due_at, place rows between unbounded preceding and 1 preceding), 0) as bytes_before
    from found
  ) measured
  where bytes_before < $8
),
claimed as (
  update waybill.delivery_queue q
  set lease_until = now() + $7 * interval '1 millisecond',
    claim_token = $6,
    attempt_count = q.attempt_count + 1,
    cycle_attempt_count = q.cycle_attempt_count + 1
  where q.tenant_id = any($1)
    and q.ctid = any (array(select place from picked))
    and q.lease_until is null
  returning q.*
)
select c.tenant_id, c.event_id, c.endpoint_id, c.delivery_id, c.attempt_count, c.cycle_attempt_count,
  extract(epoch from c.due_at)::double precision * 1000 as due_at_ms,
  extract(epoch from c.expires_at)::double precision * 1000 as expires_at_ms,
  extract(epoch from c.lease_until)::double precision * 1000 as lease_until_ms,
  extract(epoch from clock_timestamp())::double precision * 1000 as database_now_ms,
  e.event_type, e.content_type, e.payload,
  p.url, p.revision, p.secrets_version
from claimed c
cross join lateral (
  select e.event_type, e.content_type, e.payload
  from waybill.events e
  where e.tenant_id = any($1) and e.tenant_id = c.tenant_id and e.id = c.event_id
  offset 0
) e
cross join lateral (
  select p.url, p.revision, p.secrets_version
  from waybill.endpoints p
  where p.tenant_id = any($1) and p.tenant_id = c.tenant_id and p.id = c.endpoint_id
  offset 0
) p
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

interface ClaimedRow {
  tenant_id: string;
  event_id: string;
  endpoint_id: string;
  delivery_id: string;
  attempt_count: number;
  cycle_attempt_count: number;
  due_at_ms: number;
  expires_at_ms: number;
  lease_until_ms: number;
  database_now_ms: number;
  event_type: string;
  content_type: string;
  payload: Buffer;
  url: string;
  revision: number;
  secrets_version: number;
}

/**
 * Claims due deliveries of the chosen endpoints, at most each one's quota, and commits: nothing stays open. Rows of
 * paused, disabled and deleted endpoints are neither read nor written. No two claims ever hold the same delivery.
 */
export async function claimDeliveries(
  db: Queryable,
  quotas: readonly ClaimQuota[],
  options: { readonly claimToken: string; readonly leaseMs: number },
): Promise<Claim> {
  const tenants = quotas.map((quota) => quota.tenantId);
  const { rows } = await db.query<ClaimedRow>({
    name: 'claim-deliveries',
    text: CLAIM_DELIVERIES,
    values: [
      [...new Set(tenants)],
      tenants,
      quotas.map((quota) => quota.endpointId),
      quotas.map((quota) => quota.quota),
      quotas.map((quota) => quota.watermarkMs),
      options.claimToken,
      options.leaseMs,
      CLAIM_BYTES_MAX,
    ],
  });
  return {
    databaseNowMs: rows[0]?.database_now_ms ?? 0,
    deliveries: rows.map((row) => toClaimedDelivery(row, options.claimToken)),
  };
}

function toClaimedDelivery(row: ClaimedRow, claimToken: string): ClaimedDelivery {
  return {
    tenantId: row.tenant_id,
    eventId: row.event_id,
    endpointId: row.endpoint_id,
    deliveryId: row.delivery_id,
    claimToken,
    attemptNumber: row.attempt_count,
    cycleAttemptNumber: row.cycle_attempt_count,
    eventType: row.event_type,
    contentType: row.content_type,
    payload: row.payload,
    url: row.url,
    endpointRevision: row.revision,
    secretsVersion: row.secrets_version,
    dueAtMs: row.due_at_ms,
    expiresAtMs: row.expires_at_ms,
    leaseUntilMs: row.lease_until_ms,
  };
}
