import type { Queryable } from '#runtime';
import { SHOWN_STATE, STANDING_JOINS } from './delivery-row.js';
import type { DeliveryState } from './types.js';

const READ_SHOWN_STATE = `
select ${SHOWN_STATE} as state,
  p.deleted_at is not null as endpoint_deleted
from waybill.deliveries d
join waybill.endpoints p on p.tenant_id = d.tenant_id and p.id = d.endpoint_id${STANDING_JOINS}
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
