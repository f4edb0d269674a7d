import type { Pool } from 'pg';

/** A backlog, and where it leads. */
export interface Backlog {
  readonly tenants: number;
  readonly endpointsPerTenant: number;
  readonly dueRows: number;
  /** Deliveries that are done, behind the due ones. */
  readonly finishedRows: number;
  /** The endpoints' URLs are this one with `/1`, `/2`, … behind it. */
  readonly url: string;
}

const SEED = `
with tenant as (
  insert into waybill.tenants (id, name)
  select waybill.event_id(now(), gen_random_uuid()), 'tenant ' || n from generate_series(1, $3::integer) n
  returning id
),
endpoint as (
  insert into waybill.endpoints (tenant_id, id, url)
  select t.id, waybill.event_id(now(), gen_random_uuid()), $5 || '/' || n
  from tenant t, generate_series(1, $4::integer) n
  returning tenant_id, id
),
secret as (
  insert into waybill.endpoint_secrets (tenant_id, endpoint_id, id, secret)
  select tenant_id, id, gen_random_uuid(), 'whsec_' || encode(sha256(uuid_send(id)), 'base64') from endpoint
),
numbered as (
  select *, row_number() over () - 1 as number from endpoint
),
event as (
  select e.tenant_id, e.id as endpoint_id, n,
    waybill.event_id(now() - n * interval '10 milliseconds', gen_random_uuid()) as id
  from generate_series(1, $1::integer + $2::integer) n
  join numbered e on e.number = n % ($3 * $4)
),
stored as (
  insert into waybill.events (tenant_id, id, event_type, payload, content_type, target_count, created_at)
  select tenant_id, id, 'order.created', '{}', 'application/json', 1, now() from event
),
owed as (
  insert into waybill.deliveries (tenant_id, event_id, endpoint_id, id, state, endpoint_revision, created_at, expires_at, finished_at)
  select tenant_id, id, endpoint_id, waybill.derived_id(id, endpoint_id),
    case when n > $1 then 'succeeded' else 'pending' end, 1, now(), now() + interval '14 days',
    case when n > $1 then now() end
  from event
)
insert into waybill.delivery_queue (tenant_id, event_id, endpoint_id, delivery_id, due_at, expires_at, payload_bytes)
select tenant_id, id, endpoint_id, waybill.derived_id(id, endpoint_id), now() - n * interval '10 milliseconds',
  now() + interval '14 days', 2
from event
where n <= $1
`;

/** Stores due rows spread over the endpoints, before a history of finished ones; statistics are left as they fell. */
export async function seedBacklog(pool: Pick<Pool, 'query'>, backlog: Backlog): Promise<void> {
  const { dueRows, finishedRows, tenants, endpointsPerTenant, url } = backlog;
  await pool.query(SEED, [dueRows, finishedRows, tenants, endpointsPerTenant, url]);
}

/** Makes day partitions until 40 days stand, as many as a month of history and what is made ahead. */
export async function standFortyDays(pool: Pool): Promise<void> {
  await pool.query(`select waybill.create_day_partitions((now() at time zone 'UTC')::date - 25, 40)`);
}
