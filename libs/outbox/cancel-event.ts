import type { Queryable } from '#runtime';
import { SHOWN_STATE, STANDING_JOINS } from './delivery-row.js';
import type { DeliveryState } from './types.js';

/**
 * Takes all of an event's deliveries that nobody has claimed out of the queue. They are locked in the order in which
 * records lock theirs, so that the two never wait for each other crosswise.
 */
const CANCEL_EVENT = `
with free as materialized (
  select q.endpoint_id
  from waybill.delivery_queue q
  where q.tenant_id = $1
    and q.event_id = $2
    and q.lease_until is null
  order by q.endpoint_id
  for update
),
removed as (
  delete from waybill.delivery_queue q
  using free f
  where q.tenant_id = $1
    and q.event_id = $2
    and q.endpoint_id = f.endpoint_id
    and q.lease_until is null
  returning q.endpoint_id, q.attempt_count, q.cycle_attempt_count
),
cancelled as (
  update waybill.deliveries d
  set state = 'cancelled', finished_at = now(), attempt_count = r.attempt_count, cycle_attempt_count = r.cycle_attempt_count
  from removed r
  where d.tenant_id = $1
    and d.event_id = $2
    and d.endpoint_id = r.endpoint_id
    and d.state in ('pending', 'failed')
  returning d.id
)
select id from cancelled
`;

/** One row with nulls for an event that was owed to nobody. `offset 0` as in READ_SHOWN_STATE, for the same reason. */
const READ_EVENT_STATES = `
select d.id, d.endpoint_id, shown.state
from waybill.events e
left join waybill.deliveries d on d.tenant_id = e.tenant_id and d.event_id = e.id
left join lateral (
  select ${SHOWN_STATE} as state
  from waybill.endpoints p${STANDING_JOINS}
  where p.tenant_id = $1 and p.tenant_id = d.tenant_id and p.id = d.endpoint_id
  offset 0
) shown on true
where e.tenant_id = $1
  and e.id = $2
order by d.endpoint_id
`;

/** What became of one delivery of an event that was to be cancelled. */
export interface CancelledOfEvent {
  readonly id: string;
  readonly endpointId: string;
  readonly state: DeliveryState;
  /** `in_progress`: an attempt is under way, and ends as it ends. `finished`: it had succeeded or was dead. */
  readonly result: 'cancelled' | 'already_cancelled' | 'in_progress' | 'finished';
}

interface StateRow {
  id: string | null;
  endpoint_id: string;
  state: DeliveryState;
}

/** Claims can end between the two statements: what is cancellable after all is asked again. */
const TRIES_MAX = 3;
const CANCELLABLE: readonly DeliveryState[] = ['pending', 'failed', 'held'];

/** Cancels each of the event's deliveries of which no attempt is under way, and says of all what became of them; null when there is no such event. */
export async function cancelEvent(
  db: Queryable,
  tenantId: string,
  eventId: string,
): Promise<readonly CancelledOfEvent[] | null> {
  const cancelledIds = new Set<string>();
  for (let tries = 1; ; tries += 1) {
    const cancelled = await db.query<{ id: string }>({
      name: 'cancel-event',
      text: CANCEL_EVENT,
      values: [tenantId, eventId],
    });
    for (const { id } of cancelled.rows) cancelledIds.add(id);
    const { rows } = await db.query<StateRow>({ text: READ_EVENT_STATES, values: [tenantId, eventId] });
    if (rows.length === 0) return null;
    const open = rows.some(({ id, state }) => CANCELLABLE.includes(state) && !cancelledIds.has(id!));
    if (!open || tries === TRIES_MAX) {
      return rows.flatMap(({ id, endpoint_id: endpointId, state }) =>
        id === null ? [] : [{ id, endpointId, state, result: resultOf(state, cancelledIds.has(id)) }],
      );
    }
  }
}

/** One that we cancelled stays cancelled in the answer, even if somebody has replayed it since. */
function resultOf(state: DeliveryState, byUs: boolean): CancelledOfEvent['result'] {
  if (byUs) return 'cancelled';
  if (state === 'cancelled') return 'already_cancelled';
  return state === 'succeeded' || state === 'dead' ? 'finished' : 'in_progress';
}
