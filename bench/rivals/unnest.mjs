// The ceiling of batched ingest: one statement that inserts the same rows from arrays, straight from Node, no HTTP.
import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { answer } from '../support/answer.mjs';

const INSERT = `
with input as (
  select waybill.event_id(now(), i.random) as id, i.random as delivery_id, i.payload
  from unnest($3::uuid[], $4::bytea[]) as i (random, payload)
),
stored_events as (
  insert into waybill.events (tenant_id, id, event_type, payload, content_type, target_count, created_at)
  select $1::uuid, id, $5, payload, 'application/json', 1, now() from input
),
stored_deliveries as (
  insert into waybill.deliveries (tenant_id, event_id, endpoint_id, id, state, endpoint_revision, created_at, expires_at)
  select $1::uuid, id, $2::uuid, delivery_id, 'pending', 1, now(), now() + interval '14 days' from input
)
insert into waybill.delivery_queue (tenant_id, event_id, endpoint_id, delivery_id, due_at, expires_at, payload_bytes)
select $1::uuid, id, $2::uuid, delivery_id, now(), now() + interval '14 days', octet_length(payload) from input`;

answer({
  /** Inserts batches for `ms` on so many connections; returns events a second. */
  insert: async ({ databaseUrl, tenantId, endpointId, eventType, payload, batch, connections, ms }) => {
    const startedAt = performance.now();
    const bytes = Buffer.from(payload);
    let batches = 0;
    const lane = async () => {
      const client = new pg.Client({ connectionString: databaseUrl });
      await client.connect();
      while (performance.now() - startedAt < ms) {
        const values = [
          tenantId,
          endpointId,
          Array.from({ length: batch }, () => randomUUID()),
          Array.from({ length: batch }, () => bytes),
          eventType,
        ];
        await client.query({ name: 'insert', text: INSERT, values });
        batches += 1;
      }
      await client.end();
    };
    await Promise.all(Array.from({ length: connections }, lane));
    return { perSecond: (batches * batch) / ((performance.now() - startedAt) / 1000) };
  },
});
