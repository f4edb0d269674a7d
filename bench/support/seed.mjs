/** The one secret of all seeded endpoints: signing costs the same with any. */
export const SECRET = `whsec_${Buffer.alloc(24, 7).toString('base64')}`;
export const EVENT_TYPE = 'bench.happened';

/** Makes tenants; returns their ids. */
export async function seedTenants(db, count) {
  const { rows } = await db.query(
    `insert into waybill.tenants (id, name)
     select gen_random_uuid(), 'bench ' || n from generate_series(1, $1) n returning id`,
    [count],
  );
  return rows.map((row) => row.id);
}

/** Makes endpoints, dealt out over the tenants and the URLs in turn; returns them as {tenant_id, id, url}. */
export async function seedEndpoints(db, { tenantIds, count, urls, subscribed = false }) {
  const { rows } = await db.query(
    `insert into waybill.endpoints (tenant_id, id, url)
     select ($2::uuid[])[1 + n % cardinality($2::uuid[])], gen_random_uuid(), ($3::text[])[1 + n % cardinality($3::text[])]
     from generate_series(0, $1 - 1) n returning tenant_id, id, url`,
    [count, tenantIds, urls],
  );
  const ids = rows.map((row) => row.id);
  await db.query(
    `insert into waybill.endpoint_secrets (tenant_id, endpoint_id, id, secret)
     select tenant_id, id, gen_random_uuid(), $1 from waybill.endpoints where id = any($2)`,
    [SECRET, ids],
  );
  if (subscribed) {
    await db.query(
      `insert into waybill.subscriptions (tenant_id, event_type, endpoint_id)
       select tenant_id, $1, id from waybill.endpoints where id = any($2)`,
      [EVENT_TYPE, ids],
    );
  }
  return rows;
}

/**
 * Makes `count` events with one delivery each, dealt out over the endpoints in turn and a millisecond apart, the last
 * due now: or, with `dueInMs`, that much later. As acceptEvents would have stored them; `queueOnly` leaves out the
 * rows in deliveries, which no claim reads.
 */
export async function seedBacklog(
  db,
  { endpoints, count, payloadBytes = 300, dueInMs = 0, queueOnly = false },
) {
  const deliveryId = queueOnly ? 'gen_random_uuid()' : 'waybill.derived_id(event_id, endpoint_id)';
  await db.query(
    `create unlogged table public.seed as
     select *, ${deliveryId} as delivery_id, created_at + $4 * interval '1 millisecond' as due_at
     from (
       select waybill.event_id(now() - ($1 - n) * interval '1 millisecond', gen_random_uuid()) as event_id,
         ($2::uuid[])[1 + n % cardinality($2::uuid[])] as tenant_id,
         ($3::uuid[])[1 + n % cardinality($3::uuid[])] as endpoint_id,
         now() - ($1 - n) * interval '1 millisecond' as created_at,
         convert_to(rpad('{"event":"${EVENT_TYPE}","n":' || n || ',"text":"', $5 - 2, 'waybill ') || '"}', 'UTF8') as payload
       from generate_series(0, $1::integer - 1) n
       offset 0
     ) made`,
    [count, endpoints.map((one) => one.tenant_id), endpoints.map((one) => one.id), dueInMs, payloadBytes],
  );
  await db.query(`
    insert into waybill.events (tenant_id, id, event_type, payload, content_type, target_count, created_at)
    select tenant_id, event_id, '${EVENT_TYPE}', payload, 'application/json', 1, created_at from public.seed`);
  if (!queueOnly) {
    await db.query(`
      insert into waybill.deliveries (tenant_id, event_id, endpoint_id, id, state, endpoint_revision, created_at, expires_at)
      select tenant_id, event_id, endpoint_id, delivery_id, 'pending', 1, created_at, due_at + interval '14 days'
      from public.seed`);
  }
  await db.query(`
    insert into waybill.delivery_queue (tenant_id, event_id, endpoint_id, delivery_id, due_at, expires_at, payload_bytes)
    select tenant_id, event_id, endpoint_id, delivery_id, due_at, due_at + interval '14 days', octet_length(payload)
    from public.seed`);
  await db.query('drop table public.seed');
}

/** What autovacuum would have done to tables that stand a while. */
export async function settleTables(db) {
  for (const table of ['events', 'deliveries', 'delivery_queue', 'endpoints', 'endpoint_secrets']) {
    await db.query(`vacuum (analyze) waybill.${table}`);
  }
}
