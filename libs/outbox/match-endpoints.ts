import type { Queryable } from '#runtime';

/**
 * Who gets an event, as both doors of accept decide it, from a CTE \`fresh\` (place, tenant_id, event_type): subscriptions by
 * exact type or wildcard, then the endpoint, then its filter. A payload is read as JSON once an event, and only where an
 * endpoint in reach has a filter; one that jsonb cannot hold reaches no filter. \`payloadOf\` gives the bytes of \`fresh f\`.
 */
export const reachedFrom = (payloadOf: string): string => `
matched as (
  select f.place, s.endpoint_id
  from fresh f
  join waybill.subscriptions s on s.tenant_id = any($1) and s.tenant_id = f.tenant_id and s.event_type = f.event_type
  union
  select f.place, s.endpoint_id
  from fresh f
  join waybill.subscriptions s on s.tenant_id = any($1) and s.tenant_id = f.tenant_id and s.is_wildcard
  where waybill.event_type_matches(s.event_type, f.event_type)
    and f.event_type not like 'waybill.%'
),
in_reach as materialized (
  select m.place, p.id as endpoint_id, p.revision, p.max_age_ms, p.filter_path
  from matched m
  join fresh f on f.place = m.place
  join waybill.endpoints p on p.tenant_id = any($1) and p.tenant_id = f.tenant_id and p.id = m.endpoint_id
  where p.deleted_at is null and p.status <> 'disabled'
),
parsed as materialized (
  select f.place, waybill.payload_json(${payloadOf}) as payload
  from fresh f
  where f.place in (select place from in_reach where filter_path is not null)
),
reached as (
  select r.place, r.endpoint_id, r.revision, r.max_age_ms
  from in_reach r
  left join parsed j on j.place = r.place
  where r.filter_path is null or j.payload @@ r.filter_path
)`;

const MATCH_ENDPOINTS = `
with fresh as materialized (
  select 1 as place, $2::uuid as tenant_id, $3::text as event_type
),${reachedFrom('$4::bytea')}
select r.endpoint_id as id,
  case when x.endpoint_id is not null then 'matches' when j.payload is null then 'unfilterable' else 'filtered' end as verdict,
  count(*) filter (where x.endpoint_id is not null) over ()::integer as matching,
  count(*) filter (where x.endpoint_id is null) over ()::integer as passed_over
from in_reach r
left join reached x on x.place = r.place and x.endpoint_id = r.endpoint_id
left join parsed j on j.place = r.place
order by x.endpoint_id is null, r.endpoint_id
limit $5
`;

/** Whether an endpoint that is subscribed to an event's type gets it: its filter may say no, or could not be asked. */
export type MatchVerdict = 'matches' | 'filtered' | 'unfilterable';

export interface Matching {
  /** Those that get it first. */
  readonly endpoints: readonly { readonly id: string; readonly verdict: MatchVerdict }[];
  readonly matching: number;
  readonly passedOver: number;
}

interface MatchRow {
  id: string;
  verdict: MatchVerdict;
  matching: number;
  passed_over: number;
}

/** Who would get an event if it were accepted now, by the same steps; stores nothing. Names at most `limit` endpoints. */
export async function matchEndpoints(
  db: Queryable,
  tenantId: string,
  event: { readonly eventType: string; readonly payload: Buffer },
  limit: number,
): Promise<Matching> {
  const { rows } = await db.query<MatchRow>({
    text: MATCH_ENDPOINTS,
    values: [[tenantId], tenantId, event.eventType, event.payload, limit],
  });
  return {
    endpoints: rows.map(({ id, verdict }) => ({ id, verdict })),
    matching: rows[0]?.matching ?? 0,
    passedOver: rows[0]?.passed_over ?? 0,
  };
}
