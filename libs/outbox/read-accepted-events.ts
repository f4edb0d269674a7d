import type { Queryable } from '#runtime';
import { SHOWN_STATE, standingJoins } from './delivery-row.js';
import type { AcceptedEvent, DeliveryState } from './types.js';

/**
 * The events that idempotency keys stand for, with the state of their deliveries as it is now; a key may stand for what is
 * no event.
 */
const READ_ACCEPTED_EVENTS = `
select asked.place, k.fingerprint, e.id, e.consumer_id, e.event_type, e.created_at,
  (select coalesce(json_agg(json_build_object('id', d.id, 'endpoint_id', d.endpoint_id,
      'state', ${SHOWN_STATE}) order by d.endpoint_id), '[]')
   from waybill.deliveries d
   join waybill.endpoints p on p.tenant_id = any($1) and p.tenant_id = d.tenant_id and p.id = d.endpoint_id${standingJoins('any($1)')}
   where d.tenant_id = any($1) and d.tenant_id = e.tenant_id and d.event_id = e.id) as deliveries
from unnest($2::uuid[], $3::text[], $4::integer[]) as asked (tenant_id, key, place)
join waybill.idempotency_keys k on k.tenant_id = any($1) and k.tenant_id = asked.tenant_id and k.key = asked.key
left join waybill.events e on e.tenant_id = any($1) and e.tenant_id = k.tenant_id and e.id = k.resource_id
`;

interface KeyUse {
  readonly tenantId: string;
  readonly key: string;
  readonly place: number;
}

interface AcceptedRow {
  place: number;
  fingerprint: Buffer;
  /** Null, as all of the event's columns, when another route used the key. */
  id: string | null;
  consumer_id: string | null;
  event_type: string;
  created_at: Date;
  deliveries: { id: string; endpoint_id: string; state: DeliveryState }[];
}

/** Gives, by place, the fingerprint under which each key was first used and the event it made, null if it made none. */
export async function readAcceptedEvents(
  db: Queryable,
  uses: readonly KeyUse[],
): Promise<Map<number, { fingerprint: Buffer; event: AcceptedEvent | null }>> {
  const { rows } = await db.query<AcceptedRow>({
    text: READ_ACCEPTED_EVENTS,
    values: [
      [...new Set(uses.map((use) => use.tenantId))],
      uses.map((use) => use.tenantId),
      uses.map((use) => use.key),
      uses.map((use) => use.place),
    ],
  });
  return new Map(rows.map((row) => [row.place, { fingerprint: row.fingerprint, event: toEvent(row) }]));
}

function toEvent(row: AcceptedRow): AcceptedEvent | null {
  if (row.id === null) return null;
  return {
    id: row.id,
    consumerId: row.consumer_id,
    eventType: row.event_type,
    createdAt: row.created_at,
    deliveries: row.deliveries.map(({ id, endpoint_id, state }) => ({ id, endpointId: endpoint_id, state })),
  };
}
