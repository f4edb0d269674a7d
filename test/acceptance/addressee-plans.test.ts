import { randomUUID } from 'node:crypto';

import { acceptEvents } from '#outbox';
import { newId } from '#runtime';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { type ExplainingClient, explainingClient } from '../support/explain.js';
import { createTenantWithKey } from '../support/tenant.js';

const CONSUMERS = 2_000;

/** Each with an endpoint that takes everything, and this type once more by name; the tenant has one such endpoint too. */
const SEED = `
with consumer as (
  insert into waybill.consumers (tenant_id, id, uid)
  select $1, gen_random_uuid(), 'customer ' || n from generate_series(1, ${CONSUMERS}) n
  returning id
),
endpoint as (
  insert into waybill.endpoints (tenant_id, id, url, consumer_id)
  select $1, gen_random_uuid(), 'https://receiver.example', id from (select id from consumer union all select null) owner
  returning id, consumer_id
)
insert into waybill.subscriptions (tenant_id, event_type, endpoint_id, consumer_id)
select $1, event_type, id, consumer_id from endpoint, unnest(array['*', 'order.created', 'waybill.delivery.dead']) event_type
`;

let database: TestDatabase;
let db: ExplainingClient;
let tenantId: string;

beforeAll(async () => {
  database = await createTestDatabase();
  ({ tenantId } = await createTenantWithKey(database.url));
  await database.pool.query(SEED, [tenantId]);
  await database.pool.query('vacuum analyze');
  db = await explainingClient(database.url);
});

afterAll(async () => {
  await db.end();
  await database.drop();
});

function input(fields: object = {}) {
  return {
    tenantId,
    eventType: 'order.created',
    payload: Buffer.from('{}'),
    contentType: 'application/json',
    metadata: null,
    notBefore: null,
    idempotency: null,
    ...fields,
  };
}

/** What the last plan read of each table, rows that a filter threw away included. */
function rowsRead(): Record<string, number> {
  const byTable: Record<string, number> = {};
  for (const node of db.lastPlan()) {
    const table = node['Relation Name'];
    if (table === undefined || node['Node Type'] === 'ModifyTable') continue;
    const rows = (node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0)) * node['Actual Loops'];
    // A plan tells the average of its loops, cut to two digits.
    byTable[table] = (byTable[table] ?? 0) + Math.round(rows);
  }
  return byTable;
}

describe(`among ${CONSUMERS} consumers of a tenant an event reads no more than its own:`, () => {
  it.each([
    ['by uid', { consumer: { uid: 'customer 7' } }, 1],
    ['of the tenant', {}, 0],
  ])('%s', async (_what, fields, consumers) => {
    const [result] = await acceptEvents(db, [input(fields)], { maxAgeMs: 86_400_000 });
    expect(result).toMatchObject({ kind: 'accepted', event: { deliveries: [{}] } });
    expect(rowsRead()).toEqual({
      ...(consumers === 0 ? { consumers: 0 } : { consumers: 1 }),
      tenants: 1,
      subscriptions: 2,
      endpoints: 1,
    });
  });

  it('a hundred of them together', async () => {
    const inputs = Array.from({ length: 100 }, (_, n) => input({ consumer: { uid: `customer ${n + 1}` } }));
    const results = await acceptEvents(db, inputs, { maxAgeMs: 86_400_000 });
    expect(results.map(({ kind }) => kind)).toEqual(inputs.map(() => 'accepted'));
    expect(rowsRead()).toEqual({ tenants: 1, consumers: 100, subscriptions: 200, endpoints: 100 });
  });

  it('by an id, and for a consumer that is not there, nothing', async () => {
    const { rows } = await database.pool.query<{ id: string }>(
      `select id from waybill.consumers where uid = 'customer 9'`,
    );
    const known = input({ consumer: { id: rows[0]!.id } });
    const unknown = [{ id: newId() }, { uid: randomUUID() }].map((consumer) => input({ consumer }));
    const results = await acceptEvents(db, [known, ...unknown], { maxAgeMs: 86_400_000 });
    expect(results.map(({ kind }) => kind)).toEqual(['accepted', 'consumer_not_found', 'consumer_not_found']);
    expect(rowsRead()).toEqual({ tenants: 1, consumers: 1, subscriptions: 2, endpoints: 1 });
  });
});

it('an operator event is for the tenant, whoever else named it', async () => {
  const operator = input({ eventType: 'waybill.delivery.dead' });
  const [result] = await acceptEvents(db, [operator], { maxAgeMs: 86_400_000 });
  expect(result).toMatchObject({ kind: 'accepted', event: { consumerId: null, deliveries: [{}] } });
});
