import type { Queryable } from '#runtime';
import type { EndpointRef } from './types.js';

/**
 * lease_until is not indexed, so that a claim stays a HOT update; lapsed leases are found by walking the table in
 * block ranges instead (a whole scan took 0.27 s at 2M rows).
 */
const FIND_LAPSED_CLAIMS = `
select q.tenant_id, q.event_id, q.endpoint_id, q.delivery_id, q.claim_token, q.attempt_count, q.cycle_attempt_count,
  p.revision, p.retry,
  extract(epoch from q.expires_at)::double precision * 1000 as expires_at_ms,
  extract(epoch from q.lease_until)::double precision * 1000 as lease_until_ms,
  extract(epoch from now())::double precision * 1000 as database_now_ms
from waybill.delivery_queue q
join waybill.endpoints p on p.tenant_id = q.tenant_id and p.id = q.endpoint_id
where q.ctid >= format('(%s,0)', $1::bigint)::tid
  and q.ctid < format('(%s,0)', $2::bigint)::tid
  and q.lease_until < now()
limit $3
`;

const COUNT_BLOCKS = `
select pg_relation_size('waybill.delivery_queue') / current_setting('block_size')::bigint as blocks
`;

/** A claim whose lease has run out: its worker died, hangs, or lost the database. */
export interface LapsedClaim extends EndpointRef {
  readonly eventId: string;
  readonly deliveryId: string;
  readonly claimToken: string;
  readonly attemptNumber: number;
  readonly cycleAttemptNumber: number;
  readonly endpointRevision: number;
  /** The endpoint's stored retry policy, as JSON gives it; null for the platform's. */
  readonly retry: unknown;
  readonly expiresAtMs: number;
  readonly leaseUntilMs: number;
  readonly databaseNowMs: number;
}

interface LapsedRow {
  tenant_id: string;
  event_id: string;
  endpoint_id: string;
  delivery_id: string;
  claim_token: string;
  attempt_count: number;
  cycle_attempt_count: number;
  revision: number;
  retry: unknown;
  expires_at_ms: number;
  lease_until_ms: number;
  database_now_ms: number;
}

/** The size of the queue table in blocks. */
export async function countQueueBlocks(db: Queryable): Promise<number> {
  const { rows } = await db.query<{ blocks: string }>({ name: 'count-queue-blocks', text: COUNT_BLOCKS });
  return Number(rows[0]!.blocks);
}

/** The lapsed claims in blocks [from, until), at most `limit`. Reading locks nothing: whoever frees one does it by its token. */
export async function findLapsedClaims(
  db: Queryable,
  blocks: { readonly from: number; readonly until: number },
  limit: number,
): Promise<readonly LapsedClaim[]> {
  const { rows } = await db.query<LapsedRow>({
    name: 'find-lapsed-claims',
    text: FIND_LAPSED_CLAIMS,
    values: [blocks.from, blocks.until, limit],
  });
  return rows.map((row) => ({
    tenantId: row.tenant_id,
    eventId: row.event_id,
    endpointId: row.endpoint_id,
    deliveryId: row.delivery_id,
    claimToken: row.claim_token,
    attemptNumber: row.attempt_count,
    cycleAttemptNumber: row.cycle_attempt_count,
    endpointRevision: row.revision,
    retry: row.retry,
    expiresAtMs: row.expires_at_ms,
    leaseUntilMs: row.lease_until_ms,
    databaseNowMs: row.database_now_ms,
  }));
}
