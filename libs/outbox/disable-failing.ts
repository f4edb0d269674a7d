import type { Queryable } from '#runtime';
import type { EndpointRef } from './types.js';

/**
 * Disables endpoints that answered 410, or that did nothing but fail for longer than the limit, and says so to whoever
 * subscribed. Endpoints that somebody edits are left to the next turn: waiting for them here, with the circuit in hand, could
 * be the other half of a deadlock.
 */
const DISABLE_FAILING = `
with due as materialized (
  select x.tenant_id, x.endpoint_id, case when x.gone_at is null then 'failing' else 'gone' end as reason
  from waybill.circuits x
  join waybill.endpoints p on p.tenant_id = x.tenant_id and p.id = x.endpoint_id
  where x.gone_at is not null
    or x.last_failed_at - x.failing_since > $1 * interval '1 millisecond'
  order by x.tenant_id, x.endpoint_id
  limit $2
  for update of p, x skip locked
),
disabled as (
  update waybill.endpoints u
  set status = 'disabled', disabled_reason = d.reason, version = u.version + 1, updated_at = now()
  from due d
  where u.tenant_id = d.tenant_id
    and u.id = d.endpoint_id
    and u.status <> 'disabled'
    and u.deleted_at is null
  returning u.tenant_id, u.id as endpoint_id, d.reason
),
settled as (
  update waybill.circuits c
  set gone_at = null, failing_since = null
  from due d
  where c.tenant_id = d.tenant_id
    and c.endpoint_id = d.endpoint_id
),
announced as (
  insert into waybill.announcements (tenant_id, event_type, subject_id, endpoint_id, reason, created_at)
  select d.tenant_id, 'waybill.endpoint.disabled', d.endpoint_id, d.endpoint_id, d.reason, now()
  from disabled d
  where exists (
    select from waybill.subscriptions s
    where s.tenant_id = d.tenant_id and s.addressee_id = d.tenant_id and s.event_type = 'waybill.endpoint.disabled'
  )
  on conflict (tenant_id, event_type, subject_id) do nothing
)
select tenant_id, endpoint_id, reason from disabled
`;

export interface DisabledEndpoint extends EndpointRef {
  readonly reason: 'gone' | 'failing';
}

/** Disables at most `limit` endpoints that are gone or have failed without one success for `failingMs`; returns those it did. */
export async function disableFailing(
  db: Queryable,
  { failingMs, limit }: { readonly failingMs: number; readonly limit: number },
): Promise<readonly DisabledEndpoint[]> {
  const { rows } = await db.query<{ tenant_id: string; endpoint_id: string; reason: 'gone' | 'failing' }>({
    name: 'disable-failing',
    text: DISABLE_FAILING,
    values: [failingMs, limit],
  });
  return rows.map((row) => ({ tenantId: row.tenant_id, endpointId: row.endpoint_id, reason: row.reason }));
}
