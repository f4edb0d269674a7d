import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { acceptEvents, countQueueBlocks, expireDeliveries } from '#outbox';
import { newId } from '#runtime';
import { createTestDatabase, type TestDatabase } from '../support/database.js';

let database: TestDatabase;
const tenantId = newId();
const endpointId = newId();

beforeAll(async () => {
  database = await createTestDatabase();
  await database.pool.query('insert into waybill.tenants (id, name) values ($1, $2)', [tenantId, 'late']);
  await database.pool.query(
    `insert into waybill.endpoints (tenant_id, id, url, status) values ($1, $2, 'https://receiver.example/', 'paused')`,
    [tenantId, endpointId],
  );
  await database.pool.query(
    `insert into waybill.subscriptions (tenant_id, event_type, endpoint_id) values ($1, '*', $2)`,
    [tenantId, endpointId],
  );
});

afterAll(() => database.drop());

const accept = (maxAgeMs: number) =>
  acceptEvents(
    database.pool,
    [
      {
        tenantId,
        eventType: 'order.created',
        payload: Buffer.from('{}'),
        contentType: 'application/json',
        metadata: null,
        notBefore: null,
        idempotency: null,
      },
    ],
    { maxAgeMs },
  );

describe('a debt', () => {
  it('ends as a dead letter when its time is over, behind a paused endpoint too, and not before', async () => {
    await accept(0);
    await accept(60_000);
    const blocks = await countQueueBlocks(database.pool);
    expect(await expireDeliveries(database.pool, { from: 0, until: blocks }, 100)).toBe(1);
    expect(await expireDeliveries(database.pool, { from: 0, until: blocks }, 100)).toBe(0);
    const states = await database.pool.query('select state from waybill.deliveries order by state');
    expect(states.rows).toEqual([{ state: 'dead' }, { state: 'pending' }]);
    const letters = await database.pool.query('select reason, attempt_count from waybill.dead_letters');
    expect(letters.rows).toEqual([{ reason: 'expired', attempt_count: 0 }]);
  });
});
