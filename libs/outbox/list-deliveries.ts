import type { Queryable } from '#runtime';
import {
  DELIVERY_COLUMNS,
  DELIVERY_TABLES,
  toDelivery,
  type DeliveryRow,
  type DeliveryView,
} from './delivery-row.js';
import type { DeliveryState } from './types.js';

/**
 * Keys first, in order and no more than are needed, then each one's row as it is shown: the state that is asked for may
 * be a derived one and is judged on that row. `offset 0` keeps the planner from turning the look-ups into joins that
 * read whole days (a page of one day among 50,000 deliveries read 16,767 events).
 */
const listFrom = (keys: string): string => `
select shown.*
from (
  select k.tenant_id, k.event_id, k.endpoint_id
  from ${keys}
    and k.tenant_id = $1
    and ($2::uuid is null or (k.event_id <= $2 and (k.event_id, k.endpoint_id) < ($2, $3::uuid)))
    and ($4::uuid is null or k.endpoint_id = $4)
    and ($5::uuid is null or k.event_id = $5)
    and ($7::timestamptz is null or k.event_id >= waybill.id_floor($7 + interval '1 millisecond'))
    and ($8::timestamptz is null or k.event_id < waybill.id_floor($8))
) key
cross join lateral (
  select ${DELIVERY_COLUMNS}
  from ${DELIVERY_TABLES}
  where d.tenant_id = $1 and d.tenant_id = key.tenant_id and d.event_id = key.event_id and d.endpoint_id = key.endpoint_id
  offset 0
) shown
where ($6::text is null or shown.state = $6)
order by key.event_id desc, key.endpoint_id desc
limit $9
`;

const LIST_DELIVERIES = listFrom(`waybill.deliveries k
  where ($6::text is null or k.state = $6)`);

/** What is owed has a queue row, and what is dead an unresolved dead letter: a few beside a long history. */
const LIST_OWED = listFrom(`waybill.delivery_queue k
  where true`);
const LIST_DEAD = listFrom(`waybill.dead_letters k
  where k.resolved_at is null`);

const STATEMENTS: Readonly<Record<DeliveryState, string>> = {
  pending: LIST_OWED,
  failed: LIST_OWED,
  in_progress: LIST_OWED,
  held: LIST_OWED,
  dead: LIST_DEAD,
  succeeded: LIST_DELIVERIES,
  cancelled: LIST_DELIVERIES,
};

export interface DeliveryFilter {
  /** Only deliveries that come after this one in the list. */
  readonly after: { readonly eventId: string; readonly endpointId: string } | null;
  readonly endpointId: string | null;
  readonly eventId: string | null;
  readonly state: DeliveryState | null;
  /** Both bounds are exclusive. */
  readonly createdAfter: Date | null;
  readonly createdBefore: Date | null;
  readonly limit: number;
}

/** The tenant's deliveries, those of the newest events first. */
export async function listDeliveries(
  db: Queryable,
  tenantId: string,
  filter: DeliveryFilter,
): Promise<DeliveryView[]> {
  const { rows } = await db.query<DeliveryRow>({
    text: filter.state === null ? LIST_DELIVERIES : STATEMENTS[filter.state],
    values: [
      tenantId,
      filter.after?.eventId ?? null,
      filter.after?.endpointId ?? null,
      filter.endpointId,
      filter.eventId,
      filter.state,
      filter.createdAfter,
      filter.createdBefore,
      filter.limit,
    ],
  });
  return rows.map(toDelivery);
}
