import { newId, type Queryable } from '#runtime';
import { readShownState } from './read-shown-state.js';
import type { DeliveryState } from './types.js';

/**
 * Puts a terminal delivery back into the queue with a fresh budget: due now, attempt numbers going on from where they
 * stood, its dead letter marked resolved. Of two at once the second finds it pending.
 */
const REPLAY_DELIVERY = `
with revived as (
  update waybill.deliveries d
  set state = 'pending', cycle_attempt_count = 0, finished_at = null,
    expires_at = now() + interval '1 millisecond' * coalesce((
      select p.max_age_ms from waybill.endpoints p where p.tenant_id = $1 and p.id = d.endpoint_id), $3::bigint)
  where d.tenant_id = $1
    and d.event_id between waybill.first_of_millisecond($2) and waybill.last_of_millisecond($2)
    and d.id = $2
    and d.state in ('succeeded', 'dead', 'cancelled')
    -- A join would be planned for a whole millisecond's deliveries, and read all of the tenant's endpoints.
    and (select p.deleted_at is null from waybill.endpoints p where p.tenant_id = $1 and p.id = d.endpoint_id)
  returning d.tenant_id, d.event_id, d.endpoint_id, d.id, d.attempt_count, d.expires_at
),
queued as (
  insert into waybill.delivery_queue (tenant_id, event_id, endpoint_id, delivery_id, due_at, expires_at, attempt_count, payload_bytes)
  select r.tenant_id, r.event_id, r.endpoint_id, r.id, now(), r.expires_at, r.attempt_count, octet_length(e.payload)
  from revived r
  join waybill.events e on e.tenant_id = $1 and e.id = r.event_id
),
resolved as (
  update waybill.dead_letters l
  set resolved_at = now()
  from revived r
  where l.tenant_id = $1
    and l.event_id = r.event_id
    and l.endpoint_id = r.endpoint_id
    and l.resolved_at is null
),
asked as (
  insert into waybill.replays (tenant_id, id, event_id, endpoint_id, delivery_id, api_key_id, created_at)
  select tenant_id, $4, event_id, endpoint_id, id, $5, now()
  from revived
)
select endpoint_id from revived
`;

export type ReplayResult =
  | { readonly kind: 'replayed'; readonly replayId: string; readonly endpointId: string }
  | { readonly kind: 'not_found' }
  | { readonly kind: 'endpoint_deleted' }
  | { readonly kind: 'not_replayable'; readonly state: DeliveryState };

/** A delivery can finish between the two statements: then it is replayable after all, and asked again. */
const TRIES_MAX = 3;
const TERMINAL: readonly DeliveryState[] = ['succeeded', 'dead', 'cancelled'];

/** Makes a terminal delivery due again and notes who asked; a live one is left as it is and its state named. */
export async function replayDelivery(
  db: Queryable,
  tenantId: string,
  deliveryId: string,
  options: { readonly apiKeyId: string | null; readonly maxAgeMs: number },
): Promise<ReplayResult> {
  for (let tries = 1; ; tries += 1) {
    const replayId = newId();
    const revived = await db.query<{ endpoint_id: string }>({
      name: 'replay-delivery',
      text: REPLAY_DELIVERY,
      values: [tenantId, deliveryId, options.maxAgeMs, replayId, options.apiKeyId],
    });
    const row = revived.rows[0];
    if (row !== undefined) return { kind: 'replayed', replayId, endpointId: row.endpoint_id };
    const shown = await readShownState(db, tenantId, deliveryId);
    if (shown === null) return { kind: 'not_found' };
    if (shown.endpointDeleted) return { kind: 'endpoint_deleted' };
    if (!TERMINAL.includes(shown.state) || tries === TRIES_MAX) {
      return { kind: 'not_replayable', state: shown.state };
    }
  }
}
