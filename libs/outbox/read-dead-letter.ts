import type { Queryable } from '#runtime';
import { toDeadLetter, type DeadLetter, type DeadLetterRow } from './list-dead-letters.js';

const READ_DEAD_LETTER = `
select delivery_id, event_id, endpoint_id, reason, attempt_count, died_at, resolved_at
from waybill.dead_letters
where tenant_id = $1
  and event_id between waybill.first_of_millisecond($2) and waybill.last_of_millisecond($2)
  and delivery_id = $2
`;

/** The dead letter of the tenant's delivery, or null when it never died. */
export async function readDeadLetter(
  db: Queryable,
  tenantId: string,
  deliveryId: string,
): Promise<DeadLetter | null> {
  const { rows } = await db.query<DeadLetterRow>({ text: READ_DEAD_LETTER, values: [tenantId, deliveryId] });
  return rows[0] === undefined ? null : toDeadLetter(rows[0]);
}
