import type { Queryable } from '#runtime';
import { SHOWN_STATE, STANDING_JOINS } from './delivery-row.js';
import type { DeliveryState } from './types.js';

/**
 * Planned once for all values, the bounds look like many rows: joined, the planner read the tenant's whole queue (2,000
 * of 2,000 rows). `offset 0` keeps it to look-ups for the one row that is found.
 */
const READ_SHOWN_STATE = `
select shown.state, shown.endpoint_deleted
from waybill.deliveries d
cross join lateral (
  select ${SHOWN_STATE} as state, p.deleted_at is not null as endpoint_deleted
  from waybill.endpoints p${STANDING_JOINS}
  where p.tenant_id = $1 and p.tenant_id = d.tenant_id and p.id = d.endpoint_id
  offset 0
) shown
where d.tenant_id = $1
  and d.event_id between waybill.first_of_millisecond($2) and waybill.last_of_millisecond($2)
  and d.id = $2
`;

/** The state in which the tenant's delivery is shown now, for those who could not change it; null when there is none. */
export async function readShownState(
  db: Queryable,
  tenantId: string,
  deliveryId: string,
): Promise<{ readonly state: DeliveryState; readonly endpointDeleted: boolean } | null> {
  const { rows } = await db.query<{ state: DeliveryState; endpoint_deleted: boolean }>({
    text: READ_SHOWN_STATE,
    values: [tenantId, deliveryId],
  });
  const row = rows[0];
  return row === undefined ? null : { state: row.state, endpointDeleted: row.endpoint_deleted };
}
