import type { Queryable } from '#runtime';

/**
 * Who gets an event, as both doors of accept decide it, from a CTE `fresh` (place, tenant_id, addressee_id, event_type): subscriptions by
 * exact type or wildcard, then the endpoint, then its filter. All but the filter is looked up once a kind of event and not
 * once an event: 128 events to 1,000 endpoints took 5.6 s by event. A payload is read as JSON once, and only where an
 * endpoint in reach has a filter; one that jsonb cannot hold reaches no filter. `payloadOf` gives the bytes of `fresh f`.
 */
export const reachedFrom = (payloadOf: string): string => `
kinds as (
  select distinct tenant_id, addressee_id, event_type from fresh
),
subscribed as (
  select k.tenant_id, k.addressee_id, k.event_type, s.endpoint_id
  from kinds k
  join waybill.subscriptions s on s.tenant_id = any($1) and s.tenant_id = k.tenant_id and s.addressee_id = k.addressee_id and s.event_type = k.event_type
  union
  select k.tenant_id, k.addressee_id, k.event_type, s.endpoint_id
  from kinds k
  join waybill.subscriptions s on s.tenant_id = any($1) and s.tenant_id = k.tenant_id and s.addressee_id = k.addressee_id and s.is_wildcard
  where waybill.event_type_matches(s.event_type, k.event_type)
    and k.event_type not like 'waybill.%'
),
listening as materialized (
  select s.tenant_id, s.addressee_id, s.event_type, p.id as endpoint_id, p.revision, p.max_age_ms, p.filter_path
  from subscribed s
  join waybill.endpoints p on p.tenant_id = any($1) and p.tenant_id = s.tenant_id and p.id = s.endpoint_id
  where p.deleted_at is null and p.status <> 'disabled'
),
asked as materialized (
  select f.place, f.tenant_id, f.addressee_id, f.event_type, is_asked, case when is_asked then waybill.payload_json(${payloadOf}) end as payload
  from (
    select *, (addressee_id, event_type) in (
      select addressee_id, event_type from listening where filter_path is not null) as is_asked
    from fresh
  ) f
),
reached as (
  select a.place, l.endpoint_id, l.revision, l.max_age_ms
  from asked a
  join listening l on l.tenant_id = a.tenant_id and l.addressee_id = a.addressee_id and l.event_type = a.event_type
  where l.filter_path is null or a.payload @@ l.filter_path
)`;

const MATCH_ENDPOINTS = `
with fresh as materialized (
  select 1 as place, $2::uuid as tenant_id, $3::uuid as addressee_id, $4::text as event_type
),${reachedFrom('$5::bytea')}
select l.endpoint_id as id,
  case when r.endpoint_id is not null then 'matches' when a.payload is null then 'unfilterable' else 'filtered' end as verdict,
  count(*) filter (where r.endpoint_id is not null) over ()::integer as matching,
  count(*) filter (where r.endpoint_id is null) over ()::integer as passed_over
from asked a
cross join listening l
left join reached r on r.endpoint_id = l.endpoint_id
order by r.endpoint_id is null, l.endpoint_id
limit $6
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
  event: { readonly consumerId: string | null; readonly eventType: string; readonly payload: Buffer },
  limit: number,
): Promise<Matching> {
  const { rows } = await db.query<MatchRow>({
    text: MATCH_ENDPOINTS,
    values: [[tenantId], tenantId, event.consumerId ?? tenantId, event.eventType, event.payload, limit],
  });
  return {
    endpoints: rows.map(({ id, verdict }) => ({ id, verdict })),
    matching: rows[0]?.matching ?? 0,
    passedOver: rows[0]?.passed_over ?? 0,
  };
}
