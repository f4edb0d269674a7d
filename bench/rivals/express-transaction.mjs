// The server one writes first: Express 5, and for every request a transaction of three inserts into the same tables.
import { randomUUID } from 'node:crypto';
import express from 'express';
import pg from 'pg';
import { answer } from '../support/answer.mjs';

const CONNECTIONS = 10;
const INSERT_EVENT = `
insert into waybill.events (tenant_id, id, event_type, payload, content_type, target_count, created_at)
values ($1, waybill.event_id(now(), $2), $3, $4, 'application/json', 1, now()) returning id`;
const INSERT_DELIVERY = `
insert into waybill.deliveries (tenant_id, event_id, endpoint_id, id, state, endpoint_revision, created_at, expires_at)
values ($1, $2, $3, $4, 'pending', 1, now(), now() + interval '14 days')`;
const INSERT_QUEUED = `
insert into waybill.delivery_queue (tenant_id, event_id, endpoint_id, delivery_id, due_at, expires_at, payload_bytes)
values ($1, $2, $3, $4, now(), now() + interval '14 days', $5)`;

let pool;
let target;

answer({
  serve: ({ databaseUrl, tenantId, endpointId }) => {
    pool = new pg.Pool({ connectionString: databaseUrl, max: CONNECTIONS });
    target = { tenantId, endpointId };
    const app = express();
    app.use(express.json());
    app.post('/v1/events', async (request, response) => {
      const id = await accept(request.body);
      response.status(201).json({ id, event_type: request.body.event_type });
    });
    return new Promise((resolve) => {
      const server = app.listen(0, '127.0.0.1', () =>
        resolve(`http://127.0.0.1:${server.address().port}/v1/events`),
      );
    });
  },
});

async function accept({ event_type: eventType, payload }) {
  const { tenantId, endpointId } = target;
  const bytes = Buffer.from(JSON.stringify(payload));
  const deliveryId = randomUUID();
  const client = await pool.connect();
  try {
    await client.query('begin');
    const values = [tenantId, randomUUID(), eventType, bytes];
    const { rows } = await client.query({ name: 'event', text: INSERT_EVENT, values });
    const key = [tenantId, rows[0].id, endpointId, deliveryId];
    await client.query({ name: 'delivery', text: INSERT_DELIVERY, values: key });
    await client.query({ name: 'queued', text: INSERT_QUEUED, values: [...key, bytes.length] });
    await client.query('commit');
    return rows[0].id;
  } finally {
    client.release();
  }
}
