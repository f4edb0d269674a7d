import type { Queryable } from '#runtime';
import {
  DELIVERY_COLUMNS,
  DELIVERY_TABLES,
  toDelivery,
  type DeliveryRow,
  type DeliveryView,
} from './delivery-row.js';

/** A delivery's id carries its event's millisecond: the bounds on event_id leave one partition and a handful of rows. */
const READ_DELIVERY = `
select ${DELIVERY_COLUMNS}
from ${DELIVERY_TABLES}
where d.tenant_id = $1
  and d.event_id between waybill.first_of_millisecond($2) and waybill.last_of_millisecond($2)
  and d.id = $2
`;

const READ_ATTEMPTS = `
select number, outcome, status_code, error_kind, error, response_body, started_at, duration_ms
from waybill.attempts
where tenant_id = $1
  and event_id = $2
  and endpoint_id = $3
order by number
`;

/** One HTTP request of a delivery, or what became of it. */
export interface AttemptView {
  readonly number: number;
  readonly outcome: 'succeeded' | 'failed' | 'lease_expired';
  readonly statusCode: number | null;
  readonly errorKind: string | null;
  readonly error: string | null;
  readonly responseBody: Buffer | null;
  readonly startedAt: Date;
  readonly durationMs: number;
}

/** A row of `attempts` as the driver gives it. */
export interface AttemptRow {
  number: number;
  outcome: AttemptView['outcome'];
  status_code: number | null;
  error_kind: string | null;
  error: string | null;
  response_body: Buffer | null;
  started_at: Date;
  duration_ms: number;
}

/** The tenant's delivery with its attempts in order, or null. */
export async function readDelivery(
  db: Queryable,
  tenantId: string,
  deliveryId: string,
): Promise<(DeliveryView & { readonly attempts: readonly AttemptView[] }) | null> {
  const found = await db.query<DeliveryRow>({ text: READ_DELIVERY, values: [tenantId, deliveryId] });
  const row = found.rows[0];
  if (row === undefined) return null;
  const attempts = await db.query<AttemptRow>({
    text: READ_ATTEMPTS,
    values: [tenantId, row.event_id, row.endpoint_id],
  });
  return { ...toDelivery(row), attempts: attempts.rows.map(toAttempt) };
}

/** A row of `attempts` as an attempt. */
export function toAttempt(row: AttemptRow): AttemptView {
  return {
    number: row.number,
    outcome: row.outcome,
    statusCode: row.status_code,
    errorKind: row.error_kind,
    error: row.error,
    responseBody: row.response_body,
    startedAt: row.started_at,
    durationMs: row.duration_ms,
  };
}
