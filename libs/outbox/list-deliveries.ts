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
 * on narrow the rows first. What is owed or dead is few among many: there the rows are narrowed by the small table that
 * holds exactly those, so that a page of them never reads a long history of successes.
 */
const listDeliveriesAmong = (narrow: string): string => `
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
    ${narrow}
) shown
where ($7::text is null or state = $7)
order by event_id desc, endpoint_id desc
limit $10
`;

const LIST_ALL = listDeliveriesAmong('');
const LIST_OWED = listDeliveriesAmong('and (q.tenant_id, q.event_id, q.endpoint_id) is not null');
const LIST_DEAD = listDeliveriesAmong(`and exists (
      select from waybill.dead_letters l
      where l.tenant_id = d.tenant_id and l.event_id = d.event_id and l.endpoint_id = d.endpoint_id and l.resolved_at is null
    )`);

/** The stored states a shown state can stand on, and the statement that finds them. */
const BY_STATE: Readonly<
  Record<DeliveryState, { readonly stored: readonly string[]; readonly text: string }>
> = {
  pending: { stored: ['pending'], text: LIST_OWED },
  failed: { stored: ['failed'], text: LIST_OWED },
  in_progress: { stored: ['pending', 'failed'], text: LIST_OWED },
  held: { stored: ['pending', 'failed'], text: LIST_OWED },
  dead: { stored: ['dead'], text: LIST_DEAD },
  succeeded: { stored: ['succeeded'], text: LIST_ALL },
  cancelled: { stored: ['cancelled'], text: LIST_ALL },
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
  const state = filter.state === null ? null : BY_STATE[filter.state];
  const { rows } = await db.query<DeliveryRow>({
    text: state?.text ?? LIST_ALL,
    values: [
      tenantId,
      filter.after?.eventId ?? null,
      filter.after?.endpointId ?? null,
      filter.endpointId,
      filter.eventId,
      state?.stored ?? null,
      filter.state,
      filter.createdAfter,
      filter.createdBefore,
      filter.limit,
    ],
  });
  return rows.map(toDelivery);
}
