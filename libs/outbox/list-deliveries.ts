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
const listFrom = (keys: string, { event = 'k.event_id', order = '' } = {}): string => `
select shown.*
from (
  select k.tenant_id, ${event} as event_id, k.endpoint_id
  from ${keys}
    and ($2::uuid is null or (${event} <= $2 and (${event}, k.endpoint_id) < ($2, $3::uuid)))
    and ($4::uuid is null or k.endpoint_id = $4)
    and ($5::uuid is null or ${event} = $5)
    and ($7::timestamptz is null or ${event} >= waybill.id_floor($7 + interval '1 millisecond'))
    and ($8::timestamptz is null or ${event} < waybill.id_floor($8))
  ${order}
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
  where k.tenant_id = $1
    and ($6::text is null or k.state = $6)`);

/** What is owed has a queue row, and what is dead an unresolved dead letter: a few beside a long history. */
const LIST_OWED = listFrom(`waybill.delivery_queue k
  where k.tenant_id = $1`);
const LIST_DEAD = listFrom(`waybill.dead_letters k
  where k.tenant_id = $1
    and k.resolved_at is null`);

/** What happened to a consumer stands under its events, newest first by their index. */
const LIST_OF_CONSUMER = listFrom(
  `waybill.events v
  cross join lateral (
    select h.tenant_id, h.endpoint_id
    from waybill.deliveries h
    where h.tenant_id = $1
      and h.event_id = v.id
      and ($6::text is null or h.state = $6)
    offset 0
  ) k
  where v.tenant_id = $1
    and v.consumer_id = $10`,
  { event: 'v.id' },
);

/**
 * What a consumer is owed, or was, stands under its endpoints: all of it is read, and only a page of it is shown. As a
 * range, since of an equality the planner expects as much as the queue's average endpoint has: behind one endpoint's
 * backlog it read the whole queue for each of the others.
 */
const underEndpoints = (keys: string): string =>
  listFrom(
    `waybill.endpoints p
  cross join lateral (
    select h.tenant_id, h.event_id, h.endpoint_id
    from ${keys}
    offset 0
  ) k
  where p.tenant_id = $1
    and p.consumer_id = $10`,
    { order: 'order by k.event_id desc, k.endpoint_id desc' },
  );
const LIST_OWED_TO_CONSUMER = underEndpoints(`waybill.delivery_queue h
    where h.tenant_id = $1
      and h.endpoint_id between p.id and p.id`);
const LIST_DEAD_OF_CONSUMER = underEndpoints(`waybill.dead_letters h
    where h.tenant_id = $1
      and h.endpoint_id between p.id and p.id
      and h.resolved_at is null`);

/** By where the keys of such deliveries are found; the second is for those of one consumer. */
const OWED = [LIST_OWED, LIST_OWED_TO_CONSUMER] as const;
const DEAD = [LIST_DEAD, LIST_DEAD_OF_CONSUMER] as const;
const ANY = [LIST_DELIVERIES, LIST_OF_CONSUMER] as const;

const STATEMENTS: Readonly<Record<DeliveryState, readonly [string, string]>> = {
  pending: OWED,
  failed: OWED,
  in_progress: OWED,
  held: OWED,
  dead: DEAD,
  succeeded: ANY,
  cancelled: ANY,
};

export interface DeliveryFilter {
  /** Only deliveries that come after this one in the list. */
  readonly after: { readonly eventId: string; readonly endpointId: string } | null;
  readonly endpointId: string | null;
  readonly eventId: string | null;
  readonly consumerId: string | null;
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
  const [ofAll, ofConsumer] = filter.state === null ? ANY : STATEMENTS[filter.state];
  const { rows } = await db.query<DeliveryRow>({
    text: filter.consumerId === null ? ofAll : ofConsumer,
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
      ...(filter.consumerId === null ? [] : [filter.consumerId]),
    ],
  });
  return rows.map(toDelivery);
}
