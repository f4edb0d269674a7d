import type { Queryable } from '#runtime';

/**
 * An event's id carries the millisecond of its created_at: bounds on it are bounds on that time, exclusive at the
 * precision that is shown, and leave only the partitions that can hold it.
 */
const LIST_EVENTS = `
select e.id, e.consumer_id, e.event_type, e.created_at, e.not_before, e.metadata, e.target_count, e.unfilterable, octet_length(e.payload) as payload_bytes
from waybill.events e
where e.tenant_id = $1
  and ($2::uuid is null or e.id < $2)
  and ($3::text is null or e.event_type = $3)
  and ($4::timestamptz is null or e.id >= waybill.id_floor($4 + interval '1 millisecond'))
  and ($5::timestamptz is null or e.id < waybill.id_floor($5))
  and ($7::uuid is null or e.consumer_id = $7)
order by e.id desc
limit $6
`;

/** An event without its payload. */
export interface EventSummary {
  readonly id: string;
  /** Null for an event of the tenant itself. */
  readonly consumerId: string | null;
  readonly eventType: string;
  readonly createdAt: Date;
  readonly notBefore: Date | null;
  readonly metadata: Readonly<Record<string, string>> | null;
  readonly targetCount: number;
  /** An endpoint with a filter was passed over: the database cannot hold the payload as JSON. */
  readonly unfilterable: boolean;
  readonly payloadBytes: number;
}

export interface EventFilter {
  /** Only events older than this one. */
  readonly afterId: string | null;
  readonly eventType: string | null;
  readonly consumerId: string | null;
  /** Both bounds are exclusive. */
  readonly createdAfter: Date | null;
  readonly createdBefore: Date | null;
  readonly limit: number;
}

/** EventSummary as the driver gives it. */
export interface EventSummaryRow {
  id: string;
  consumer_id: string | null;
  event_type: string;
  created_at: Date;
  not_before: Date | null;
  metadata: Record<string, string> | null;
  target_count: number;
  unfilterable: boolean;
  payload_bytes: number;
}

/** The tenant's events, newest first. */
export async function listEvents(
  db: Queryable,
  tenantId: string,
  filter: EventFilter,
): Promise<EventSummary[]> {
  const { rows } = await db.query<EventSummaryRow>({
    text: LIST_EVENTS,
    values: [
      tenantId,
      filter.afterId,
      filter.eventType,
      filter.createdAfter,
      filter.createdBefore,
      filter.limit,
      filter.consumerId,
    ],
  });
  return rows.map(toEventSummary);
}

/** A row of an event's columns as an event. */
export function toEventSummary(row: EventSummaryRow): EventSummary {
  return {
    id: row.id,
    consumerId: row.consumer_id,
    eventType: row.event_type,
    createdAt: row.created_at,
    notBefore: row.not_before,
    metadata: row.metadata,
    targetCount: row.target_count,
    unfilterable: row.unfilterable,
    payloadBytes: row.payload_bytes,
  };
}
