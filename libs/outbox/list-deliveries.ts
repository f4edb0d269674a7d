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
 * The state that is asked for may be a derived one, so it is judged on the shown state; the stored states it can stand
 * on narrow the rows first.
 */
const LIST_DELIVERIES = `
select *
from (
  select ${DELIVERY_COLUMNS}
  from ${DELIVERY_TABLES}
  where d.tenant_id = $1
    and ($2::uuid is null or (d.event_id <= $2 and (d.event_id, d.endpoint_id) < ($2, $3::uuid)))
    and ($4::uuid is null or d.endpoint_id = $4)
    and ($5::uuid is null or d.event_id = $5)
    and ($6::text[] is null or d.state = any($6))
    and ($8::timestamptz is null or d.event_id >= waybill.id_floor($8 + interval '1 millisecond'))
    and ($9::timestamptz is null or d.event_id < waybill.id_floor($9))
) shown
where ($7::text is null or state = $7)
order by event_id desc, endpoint_id desc
limit $10
`;

/** The stored states a shown state can stand on. */
const STORED_STATES: Readonly<Record<DeliveryState, readonly string[]>> = {
  pending: ['pending'],
  failed: ['failed'],
  succeeded: ['succeeded'],
  dead: ['dead'],
  cancelled: ['cancelled'],
  in_progress: ['pending', 'failed'],
  held: ['pending', 'failed'],
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
    text: LIST_DELIVERIES,
    values: [
      tenantId,
      filter.after?.eventId ?? null,
      filter.after?.endpointId ?? null,
      filter.endpointId,
      filter.eventId,
      filter.state === null ? null : STORED_STATES[filter.state],
      filter.state,
      filter.createdAfter,
      filter.createdBefore,
      filter.limit,
    ],
  });
  return rows.map(toDelivery);
}
