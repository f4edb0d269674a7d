import { formatId, type Queryable } from '#runtime';
import { acceptEvents } from './accept-events.js';
import type { EndpointRef, EventInput } from './types.js';

/** Taken away by the transaction that accepts the event: it is made once, whatever dies in between. */
const TAKE_ANNOUNCEMENTS = `
with picked as materialized (
  select a.ctid as place
  from waybill.announcements a
  order by a.created_at
  limit $1
  for update skip locked
)
delete from waybill.announcements a
where a.ctid = any (array(select place from picked))
returning a.tenant_id, a.event_type, a.subject_id, a.endpoint_id, a.event_id, a.reason, a.created_at
`;

const AWAITED = `
select exists (select from waybill.announcements) as awaited
`;

/** Whether any operator event waits to be made: asked first, so that a quiet platform opens no transaction a second. */
export async function hasAnnouncements(db: Queryable): Promise<boolean> {
  const { rows } = await db.query<{ awaited: boolean }>({ name: 'has-announcements', text: AWAITED });
  return rows[0]!.awaited;
}

interface AnnouncementRow {
  tenant_id: string;
  event_type: string;
  subject_id: string;
  endpoint_id: string;
  event_id: string | null;
  reason: string | null;
  created_at: Date;
}

/**
 * Makes at most `limit` of the operator events that are waiting, inside the caller's transaction: what tenants subscribed
 * to hears of a disabled or recovered endpoint or a dead delivery. Returns the endpoints that are owed one now, and how
 * many events were made.
 */
export async function announceEvents(
  tx: Queryable,
  { limit, maxAgeMs }: { readonly limit: number; readonly maxAgeMs: number },
): Promise<{ readonly made: number; readonly owed: readonly EndpointRef[] }> {
  const { rows } = await tx.query<AnnouncementRow>({ text: TAKE_ANNOUNCEMENTS, values: [limit] });
  const results = await acceptEvents(tx, rows.map(toEvent), { maxAgeMs });
  const owed = results.flatMap((result, index) =>
    result.kind !== 'accepted'
      ? []
      : result.event.deliveries.map(({ endpointId }) => ({ tenantId: rows[index]!.tenant_id, endpointId })),
  );
  return { made: rows.length, owed };
}

function toEvent(row: AnnouncementRow): EventInput {
  const payload = {
    type: row.event_type,
    occurred_at: row.created_at.toISOString(),
    endpoint_id: formatId('endpoint', row.endpoint_id),
    ...(row.event_id === null
      ? {}
      : { event_id: formatId('event', row.event_id), delivery_id: formatId('delivery', row.subject_id) }),
    ...(row.reason === null ? {} : { reason: row.reason }),
  };
  return {
    tenantId: row.tenant_id,
    // Of its consumers' endpoints too: consumers hear nothing of this.
    consumer: null,
    eventType: row.event_type,
    payload: Buffer.from(JSON.stringify(payload)),
    contentType: 'application/json',
    metadata: null,
    notBefore: null,
    idempotency: null,
  };
}
