import type { Queryable } from '#runtime';
import { readShownState } from './read-shown-state.js';
import type { DeliveryState } from './types.js';

/**
 * Takes a delivery that nobody has claimed out of the queue. The queue row decides: a claim that was first has set its
 * lease by the time the delete gets its lock, and a claim that comes later skips the row or finds it gone.
 */
const CANCEL_DELIVERY = `
with removed as (
  delete from waybill.delivery_queue q
  where q.tenant_id = $1
    and q.event_id between waybill.first_of_millisecond($2) and waybill.last_of_millisecond($2)
    and q.delivery_id = $2
    and q.lease_until is null
  returning q.event_id, q.endpoint_id, q.attempt_count, q.cycle_attempt_count
),
cancelled as (
  update waybill.deliveries d
  set state = 'cancelled', finished_at = now(), attempt_count = r.attempt_count, cycle_attempt_count = r.cycle_attempt_count
  from removed r
  where d.tenant_id = $1
    and d.event_id between waybill.first_of_millisecond($2) and waybill.last_of_millisecond($2)
    and d.event_id = r.event_id
    and d.endpoint_id = r.endpoint_id
    and d.state in ('pending', 'failed')
  returning d.id
)
select id from cancelled
`;

export type CancelResult =
  | { readonly kind: 'cancelled' }
  | { readonly kind: 'not_found' }
  | { readonly kind: 'not_cancellable'; readonly state: DeliveryState };

/** A claim can end between the two statements: then the delivery is cancellable after all, and asked again. */
const TRIES_MAX = 3;
const CANCELLABLE: readonly DeliveryState[] = ['pending', 'failed', 'held'];

/** Ends a debt of which no attempt is under way; anything else is left as it is and its state named. */
export async function cancelDelivery(
  db: Queryable,
  tenantId: string,
  deliveryId: string,
): Promise<CancelResult> {
  for (let tries = 1; ; tries += 1) {
    const cancelled = await db.query({
      name: 'cancel-delivery',
      text: CANCEL_DELIVERY,
      values: [tenantId, deliveryId],
    });
    if (cancelled.rows.length > 0) return { kind: 'cancelled' };
    const shown = await readShownState(db, tenantId, deliveryId);
    if (shown === null) return { kind: 'not_found' };
    if (!CANCELLABLE.includes(shown.state) || tries === TRIES_MAX) {
      return { kind: 'not_cancellable', state: shown.state };
    }
  }
}
