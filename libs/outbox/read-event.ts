import type { Queryable } from '#runtime';
import {
  DELIVERY_COLUMNS,
  DELIVERY_TABLES,
  toDelivery,
  type DeliveryRow,
  type DeliveryView,
} from './delivery-row.js';
import { toEventSummary, type EventSummary, type EventSummaryRow } from './list-events.js';

const READ_EVENT = `
select e.id, e.consumer_id, e.event_type, e.created_at, e.not_before, e.metadata, e.target_count, e.unfilterable, octet_length(e.payload) as payload_bytes,
  e.payload, e.content_type
from waybill.events e
where e.tenant_id = $1
  and e.id = $2
`;

const READ_EVENT_DELIVERIES = `
select ${DELIVERY_COLUMNS}
from ${DELIVERY_TABLES}
where d.tenant_id = $1
  and d.event_id = $2
order by d.endpoint_id
`;

/** An event with its payload, byte for byte, and all its deliveries. */
export interface StoredEvent extends EventSummary {
  readonly payload: Buffer;
  readonly contentType: string;
  readonly deliveries: readonly DeliveryView[];
}

/** The tenant's event, or null. */
export async function readEvent(
  db: Queryable,
  tenantId: string,
  eventId: string,
): Promise<StoredEvent | null> {
  const events = await db.query<EventSummaryRow & { payload: Buffer; content_type: string }>({
    text: READ_EVENT,
    values: [tenantId, eventId],
  });
  const row = events.rows[0];
  if (row === undefined) return null;
  const deliveries = await db.query<DeliveryRow>({
    text: READ_EVENT_DELIVERIES,
    values: [tenantId, eventId],
  });
  return {
    ...toEventSummary(row),
    payload: row.payload,
    contentType: row.content_type,
    deliveries: deliveries.rows.map(toDelivery),
  };
}
