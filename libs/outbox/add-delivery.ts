import type { Queryable } from '#runtime';
import { readShownState } from './read-shown-state.js';
import type { DeliveryState } from './types.js';

/**
 * Makes the delivery of an event to an endpoint that got none: the event's target count rises with it, so that what
 * was counted stays what is owed or ended. Of two at once the second finds the first one's row. Locks on the endpoint
 * are not taken: of an endpoint deleted meanwhile the dispatcher cancels what is queued.
 */
const ADD_DELIVERY = `
with target as (
  select e.tenant_id, e.id as event_id, p.id as endpoint_id, p.revision, octet_length(e.payload) as payload_bytes,
    greatest(now(), e.not_before) as due_at,
    greatest(now(), e.not_before) + interval '1 millisecond' * coalesce(p.max_age_ms, $4::bigint) as expires_at
  from waybill.events e
  join waybill.endpoints p on p.tenant_id = e.tenant_id and p.id = $3
  where e.tenant_id = $1
    and e.id = $2
    and p.addressee_id = coalesce(e.consumer_id, e.tenant_id)
    and p.deleted_at is null
    and p.status <> 'disabled'
),
stored as (
  insert into waybill.deliveries (tenant_id, event_id, endpoint_id, id, state, endpoint_revision, created_at, expires_at)
  select tenant_id, event_id, endpoint_id, waybill.derived_id(event_id, endpoint_id), 'pending', revision, now(), expires_at
  from target
  on conflict (tenant_id, event_id, endpoint_id) do nothing
  returning id, endpoint_id
),
queued as (
  insert into waybill.delivery_queue (tenant_id, event_id, endpoint_id, delivery_id, due_at, expires_at, payload_bytes)
  select t.tenant_id, t.event_id, t.endpoint_id, s.id, t.due_at, t.expires_at, t.payload_bytes
  from target t
  join stored s on s.endpoint_id = t.endpoint_id
),
counted as (
  update waybill.events e
  set target_count = e.target_count + 1
  where e.tenant_id = $1
    and e.id = $2
    and exists (select from stored)
)
select id from stored
`;

const READ_TARGET = `
select
  e.id is not null as event_exists, p.addressee_id = coalesce(e.consumer_id, e.tenant_id) as listens,
  p.status, p.deleted_at is not null as deleted, waybill.derived_id($2, $3) as delivery_id
from (select $2::uuid as event_id, $3::uuid as id) asked
left join waybill.events e on e.tenant_id = $1 and e.id = asked.event_id
left join waybill.endpoints p on p.tenant_id = $1 and p.id = asked.id
`;

interface TargetRow {
  event_exists: boolean;
  /** Null when there is no such event or endpoint. */
  listens: boolean | null;
  status: 'enabled' | 'paused' | 'disabled' | null;
  deleted: boolean;
  delivery_id: string;
}

export type AddResult =
  | { readonly kind: 'added'; readonly deliveryId: string }
  | { readonly kind: 'exists'; readonly deliveryId: string; readonly state: DeliveryState }
  | {
      readonly kind:
        | 'event_not_found'
        | 'endpoint_not_found'
        | 'addressee_mismatch'
        | 'endpoint_deleted'
        | 'endpoint_disabled';
    };

/** An endpoint can be enabled between the statements: then it is asked again. */
const TRIES_MAX = 3;

/**
 * Owes the event to one more endpoint of its addressee, whether it subscribes to its type or not: due at once, or at
 * the event's `not_before`. A delivery that is there already is left as it is and its state named.
 */
export async function addDelivery(
  db: Queryable,
  tenantId: string,
  { eventId, endpointId }: { readonly eventId: string; readonly endpointId: string },
  options: { readonly maxAgeMs: number },
): Promise<AddResult> {
  for (let tries = 1; ; tries += 1) {
    const added = await db.query<{ id: string }>({
      name: 'add-delivery',
      text: ADD_DELIVERY,
      values: [tenantId, eventId, endpointId, options.maxAgeMs],
    });
    if (added.rows[0] !== undefined) return { kind: 'added', deliveryId: added.rows[0].id };
    const { rows } = await db.query<TargetRow>({
      text: READ_TARGET,
      values: [tenantId, eventId, endpointId],
    });
    const target = rows[0]!;
    if (!target.event_exists) return { kind: 'event_not_found' };
    if (target.status === null) return { kind: 'endpoint_not_found' };
    if (target.listens === false) return { kind: 'addressee_mismatch' };
    const shown = await readShownState(db, tenantId, target.delivery_id);
    if (shown !== null) return { kind: 'exists', deliveryId: target.delivery_id, state: shown.state };
    if (target.deleted) return { kind: 'endpoint_deleted' };
    if (target.status === 'disabled' || tries === TRIES_MAX) return { kind: 'endpoint_disabled' };
  }
}
