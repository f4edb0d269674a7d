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
select r.endpoint_id as id, x.endpoint_id is not null as matches, j.place is not null and j.payload is null as unfilterable
from in_reach r
left join reached x on x.endpoint_id = r.endpoint_id
left join parsed j on j.place = r.place
order by r.endpoint_id
limit $5
`;

/** An endpoint that is subscribed to an event's type, and whether its filter lets the event through. */
export interface MatchedEndpoint {
  readonly id: string;
  readonly matches: boolean;
  /** Its filter could not be asked: the database cannot hold the payload. */
  readonly unfilterable: boolean;
}

/** What would become of an event if it were accepted now, by the same steps; stores nothing. At most \`limit\` endpoints. */
export async function matchEndpoints(
  db: Queryable,
  tenantId: string,
  event: { readonly eventType: string; readonly payload: Buffer; readonly limit: number },
): Promise<MatchedEndpoint[]> {
  const { rows } = await db.query<{ id: string; matches: boolean; unfilterable: boolean }>({
    text: MATCH_ENDPOINTS,
    values: [[tenantId], tenantId, event.eventType, event.payload, event.limit],
  });
  return rows;
}
