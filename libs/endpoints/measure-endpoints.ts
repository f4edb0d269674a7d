import type { Queryable } from '#runtime';

/** What an operator may want to know of all tenants' endpoints. */
export interface EndpointCounts {
  readonly total: number;
  /** Disabled by Waybill itself: they answered 410, or did nothing but fail. */
  readonly gone: number;
  readonly failing: number;
  readonly circuitsOpen: number;
  /** Whose own timeout is longer than the one that was asked about. */
  readonly tooSlow: number;
}

const MEASURE = `
select
  count(*)::integer as "total",
  count(*) filter (where disabled_reason = 'gone')::integer as "gone",
  count(*) filter (where disabled_reason = 'failing')::integer as "failing",
  (select count(*)::integer from waybill.circuits where state = 'open') as "circuitsOpen",
  count(*) filter (where attempt_timeout_ms > $1)::integer as "tooSlow"
from waybill.endpoints
where deleted_at is null
`;

/** Counts endpoints by reading all of them: for an operator's question, not for a gauge. */
export async function measureEndpoints(db: Queryable, timeoutMaxMs: number): Promise<EndpointCounts> {
  const { rows } = await db.query<{ [Field in keyof EndpointCounts]: number }>({
    text: MEASURE,
    values: [timeoutMaxMs],
  });
  return rows[0]!;
}
