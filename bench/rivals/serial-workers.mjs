// The design one writes first: one big table is the queue, and eight workers each claim up to 64 rows with one `or`
// predicate, then take them one by one: read the endpoint, read the event, send, record in a transaction of its own.
import pg from 'pg';
import { answer } from '../support/answer.mjs';
import { recordAttempt } from './record-attempt.mjs';
import { sendSigned } from './send-signed.mjs';

const WORKERS = 8;
const CLAIM_ROWS = 64;
const TABLE = `
create table public.serial_deliveries (
  id uuid primary key,
  tenant_id uuid not null,
  event_id uuid not null,
  endpoint_id uuid not null,
  state text not null default 'pending',
  due_at timestamptz not null,
  lease_until timestamptz,
  attempt_count integer not null default 0
);
insert into public.serial_deliveries (id, tenant_id, event_id, endpoint_id, due_at)
select delivery_id, tenant_id, event_id, endpoint_id, due_at from waybill.delivery_queue;
create index on public.serial_deliveries (state, due_at);
create index on public.serial_deliveries (state, lease_until)`;
const CLAIM = `
update public.serial_deliveries
set state = 'leased', lease_until = now() + interval '1 minute', attempt_count = attempt_count + 1
where id in (
  select id from public.serial_deliveries
  where (state = 'pending' and due_at <= now()) or (state = 'leased' and lease_until < now())
  order by due_at limit ${CLAIM_ROWS} for update skip locked)
returning id, tenant_id, event_id, endpoint_id`;
const READ_ENDPOINT = `
select p.url, s.secret from waybill.endpoints p
join waybill.endpoint_secrets s on s.tenant_id = p.tenant_id and s.endpoint_id = p.id
where p.tenant_id = $1 and p.id = $2`;
const READ_EVENT = 'select event_type, payload from waybill.events where tenant_id = $1 and id = $2';

let databaseUrl;

answer({
  prepare: async (input) => {
    databaseUrl = input.databaseUrl;
    const client = new pg.Client({ connectionString: databaseUrl });
    await client.connect();
    await client.query(TABLE);
    await client.query('vacuum (analyze) public.serial_deliveries');
    await client.end();
  },
  go: () => {
    for (let worker = 0; worker < WORKERS; worker += 1) void work();
  },
});

async function work() {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  for (;;) {
    const { rows } = await client.query({ name: 'claim', text: CLAIM });
    if (rows.length === 0) break;
    for (const row of rows) await deliver(client, row);
  }
  await client.end();
}

async function deliver(client, { id, tenant_id: tenantId, event_id: eventId, endpoint_id: endpointId }) {
  const endpoint = await readOne(client, 'read-endpoint', READ_ENDPOINT, [tenantId, endpointId]);
  const event = await readOne(client, 'read-event', READ_EVENT, [tenantId, eventId]);
  const startedAtMs = Date.now();
  const status = await sendSigned({
    ...endpoint,
    deliveryId: id,
    eventId,
    eventType: event.event_type,
    body: event.payload,
  });
  const durationMs = Date.now() - startedAtMs;
  await client.query('begin');
  await recordAttempt(client, { tenantId, eventId, endpointId }, { status, startedAtMs, durationMs });
  await client.query({
    name: 'finish',
    text: `update public.serial_deliveries set state = 'succeeded', lease_until = null where id = $1`,
    values: [id],
  });
  await client.query('commit');
}

async function readOne(client, name, text, values) {
  const { rows } = await client.query({ name, text, values });
  return rows[0];
}
