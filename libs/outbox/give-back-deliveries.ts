import type { Queryable } from '#runtime';
import type { ClaimedDelivery } from './types.js';

/**
 * Due again no earlier than now, so that discovery, which only looks back a little, sees it. A probe that was not sent is
 * free for the next claim.
 */
const GIVE_BACK_DELIVERIES = `
with given_back as (
  update waybill.delivery_queue q
  set lease_until = null, claim_token = null, due_at = greatest(q.due_at, now() + $7 * interval '1 millisecond'),
    attempt_count = q.attempt_count - 1, cycle_attempt_count = q.cycle_attempt_count - 1
  from unnest($2::uuid[], $3::uuid[], $4::uuid[], $5::uuid[], $6::integer[]) as o (tenant_id, event_id, endpoint_id, claim_token, number)
  where q.tenant_id = any($1)
    and q.tenant_id = o.tenant_id
    and q.event_id = o.event_id
    and q.endpoint_id = o.endpoint_id
    and q.claim_token = o.claim_token
    and q.attempt_count = o.number
  returning q.tenant_id, q.endpoint_id, o.claim_token
),
unprobed as (
  update waybill.circuits x
  set probe_token = null, probe_until = null
  from given_back g
  where x.tenant_id = any($1)
    and x.tenant_id = g.tenant_id
    and x.endpoint_id = g.endpoint_id
    and x.probe_token = g.claim_token
)
select count(*)::integer as freed from given_back
`;

/** Frees claims of which not one byte was sent: due after `delayMs`, the attempt not counted. */
export async function giveBackDeliveries(
  db: Queryable,
  claimed: readonly ClaimedDelivery[],
  options: { readonly delayMs: number },
): Promise<number> {
  if (claimed.length === 0) return 0;
  const tenants = claimed.map((delivery) => delivery.tenantId);
  const { rows } = await db.query<{ freed: number }>({
    name: 'give-back-deliveries',
    text: GIVE_BACK_DELIVERIES,
    values: [
      [...new Set(tenants)],
      tenants,
      claimed.map((delivery) => delivery.eventId),
      claimed.map((delivery) => delivery.endpointId),
      claimed.map((delivery) => delivery.claimToken),
      claimed.map((delivery) => delivery.attemptNumber),
      options.delayMs,
    ],
  });
  return rows[0]!.freed;
}
