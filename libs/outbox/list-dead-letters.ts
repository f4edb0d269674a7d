import type { Queryable } from '#runtime';
import type { DeadReason } from './types.js';

/** Bounds are exclusive at the millisecond that is shown. */
const LIST_DEAD_LETTERS = `
select delivery_id, event_id, endpoint_id, reason, attempt_count, died_at, resolved_at,
  to_char(died_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as died_at_text
from waybill.dead_letters
where tenant_id = $1
  and ($2::timestamptz is null or (died_at, delivery_id) < ($2, $3::uuid))
  and ($4::uuid is null or endpoint_id = $4)
  and ($5::boolean is null or (resolved_at is not null) = $5)
  and ($7::timestamptz is null or died_at >= $7 + interval '1 millisecond')
  and ($8::timestamptz is null or died_at < $8)
order by died_at desc, delivery_id desc
limit $6
`;

/** A delivery that died, and whether somebody has replayed it since. */
export interface DeadLetter {
  readonly deliveryId: string;
  readonly eventId: string;
  readonly endpointId: string;
  readonly reason: DeadReason;
  readonly attemptCount: number;
  readonly diedAt: Date;
  readonly resolvedAt: Date | null;
}

/** Where a dead letter stands in the list; the time is text, since a Date would lose the microseconds. */
export interface DeadLetterPlace {
  readonly diedAt: string;
  readonly deliveryId: string;
}

export interface DeadLetterFilter {
  readonly after: DeadLetterPlace | null;
  readonly endpointId: string | null;
  readonly resolved: boolean | null;
  /** Both bounds are exclusive; without one there is none. */
  readonly diedAfter?: Date | null;
  readonly diedBefore?: Date | null;
  readonly limit: number;
}

/** A dead letter's columns as the driver gives them. */
export interface DeadLetterRow {
  delivery_id: string;
  event_id: string;
  endpoint_id: string;
  reason: DeadReason;
  attempt_count: number;
  died_at: Date;
  resolved_at: Date | null;
}

/** The tenant's dead letters, those that died last first. */
export async function listDeadLetters(
  db: Queryable,
  tenantId: string,
  filter: DeadLetterFilter,
): Promise<(DeadLetter & { readonly place: DeadLetterPlace })[]> {
  const { rows } = await db.query<DeadLetterRow & { died_at_text: string }>({
    text: LIST_DEAD_LETTERS,
    values: [
      tenantId,
      filter.after?.diedAt ?? null,
      filter.after?.deliveryId ?? null,
      filter.endpointId,
      filter.resolved,
      filter.limit,
      filter.diedAfter ?? null,
      filter.diedBefore ?? null,
    ],
  });
  return rows.map((row) => ({
    ...toDeadLetter(row),
    place: { diedAt: row.died_at_text, deliveryId: row.delivery_id },
  }));
}

/** A row of dead_letters as a dead letter. */
export function toDeadLetter(row: DeadLetterRow): DeadLetter {
  return {
    deliveryId: row.delivery_id,
    eventId: row.event_id,
    endpointId: row.endpoint_id,
    reason: row.reason,
    attemptCount: row.attempt_count,
    diedAt: row.died_at,
    resolvedAt: row.resolved_at,
  };
}
