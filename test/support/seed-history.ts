import { newId } from '#runtime';
import type { Pool } from 'pg';

import { SIZES } from './sizes.js';

const ENDPOINTS = 500;
/** Deliveries of the history that are still owed. */
export const OWED = 2_000;
/** Not close to a midnight: a day's partition of 30 rows is read whole, and five minutes before midnight it was. */
const LAST_EVENT = `(now() - case when extract(hour from now() at time zone 'UTC') between 4 and 20
  then interval '0' else interval '8 hours' end)`;

/**
 * A history of finished deliveries over three days, of which every tenth died; behind it, older than all of it, a few
 * that are still owed, and one endpoint that got nothing but those.
 */
const SEED = `
with made as (
  select waybill.create_day_partitions((now() - interval '3 days')::date, 4)
),
endpoint as (
  insert into waybill.endpoints (tenant_id, id, url)
  select $1, waybill.event_id(now(), gen_random_uuid()), 'https://receiver.example/' || n
  from generate_series(1, ${ENDPOINTS}) n, made
  returning id
),
numbered as (
  select id, row_number() over (order by id) - 1 as number from endpoint
),
event as (
  select e.id as endpoint_id, n, n > $2::integer - ${OWED} as owed,
    waybill.event_id(${LAST_EVENT} - n * (interval '3 days' / $2), gen_random_uuid()) as id
  from generate_series(1, $2::integer) n
  join numbered e on e.number = case when n > $2::integer - ${OWED} then 0 else 1 + n % ${ENDPOINTS - 1} end
),
stored as (
  insert into waybill.events (tenant_id, id, event_type, payload, content_type, target_count, created_at)
  select $1, id, case when owed then 'rare.type' else 'order.created' end, '{}', 'application/json', 1, now() from event
),
delivery as (
  insert into waybill.deliveries (tenant_id, event_id, endpoint_id, id, state, endpoint_revision, created_at, expires_at, finished_at)
  select $1, id, endpoint_id, waybill.derived_id(id, endpoint_id),
    case when owed then 'pending' when n % 10 = 0 then 'dead' else 'succeeded' end,
    1, now(), now() + interval '14 days', case when owed then null else now() end
  from event
),
queued as (
  insert into waybill.delivery_queue (tenant_id, event_id, endpoint_id, delivery_id, due_at, expires_at, payload_bytes)
  select $1, id, endpoint_id, waybill.derived_id(id, endpoint_id), now(), now() + interval '14 days', 2
  from event where owed
)
insert into waybill.dead_letters (tenant_id, event_id, endpoint_id, delivery_id, reason, attempt_count, died_at)
select $1, id, endpoint_id, waybill.derived_id(id, endpoint_id), 'exhausted', 4, now() - n * interval '1 second'
from event where n % 10 = 0 and not owed
`;

/** The quiet endpoint is one consumer's, and ten of the others another one's; the rest are the tenant's own. */
const MAKE_CONSUMERS = `
with consumer as (
  insert into waybill.consumers (tenant_id, id, uid) values ($1, $2, 'quiet'), ($1, $3, 'busy')
),
busy as (
  select id from waybill.endpoints where tenant_id = $1 and id <> $4 order by id limit 10
)
update waybill.endpoints p
set consumer_id = case when p.id = $4 then $2::uuid else $3::uuid end
where p.tenant_id = $1 and (p.id = $4 or p.id in (select id from busy))
`;

const ADDRESS_EVENTS = `
update waybill.events e
set consumer_id = p.consumer_id
from waybill.deliveries d
join waybill.endpoints p on p.tenant_id = d.tenant_id and p.id = d.endpoint_id
where d.tenant_id = e.tenant_id and d.event_id = e.id and p.consumer_id is not null
`;

/** Makes that history for a tenant, with statistics: its quiet endpoint and the two consumers. */
export async function seedHistory(pool: Pool, tenantId: string) {
  const [quietConsumerId, busyConsumerId] = [newId(), newId()];
  await pool.query(`select waybill.create_day_partitions((now() - interval '4 days')::date, 5)`);
  await pool.query(SEED, [tenantId, SIZES.finishedRows]);
  const { rows } = await pool.query<{ endpoint_id: string }>(
    `select endpoint_id from waybill.delivery_queue limit 1`,
  );
  const quietEndpointId = rows[0]!.endpoint_id;
  await pool.query(MAKE_CONSUMERS, [tenantId, quietConsumerId, busyConsumerId, quietEndpointId]);
  await pool.query(ADDRESS_EVENTS);
  await pool.query('vacuum analyze');
  return { quietEndpointId, quietConsumerId, busyConsumerId };
}
