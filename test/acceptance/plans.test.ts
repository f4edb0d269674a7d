import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  claimDeliveries,
  discoverEndpoints,
  findLapsedClaims,
  NIL_UUID,
  recordAttempts,
  sweepEndpoints,
  type ClaimedDelivery,
  type EndpointRef,
} from '#outbox';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { explainingClient, type ExplainingClient, type PlanNode } from '../support/explain.js';
import { SIZES } from '../support/sizes.js';

const TENANTS = 4;
const ENDPOINTS_PER_TENANT = 25;

/** Due rows spread over the endpoints, behind a history of finished ones; statistics are left as they fell. */
const SEED = `
with tenant as (
  insert into waybill.tenants (id, name)
  select waybill.event_id(now(), gen_random_uuid()), 'tenant ' || n from generate_series(1, ${TENANTS}) n
  returning id
),
endpoint as (
  insert into waybill.endpoints (tenant_id, id, url)
  select t.id, waybill.event_id(now(), gen_random_uuid()), 'https://receiver.example/' || n
  from tenant t, generate_series(1, ${ENDPOINTS_PER_TENANT}) n
  returning tenant_id, id
),
numbered as (
  select *, row_number() over () - 1 as number from endpoint
),
event as (
  select e.tenant_id, e.id as endpoint_id, n,
    waybill.event_id(now() - n * interval '10 milliseconds', gen_random_uuid()) as id
  from generate_series(1, $1::integer + $2::integer) n
  join numbered e on e.number = n % ${TENANTS * ENDPOINTS_PER_TENANT}
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

let database: TestDatabase;
let db: ExplainingClient;
let endpoints: EndpointRef[];

beforeAll(async () => {
  database = await createTestDatabase();
  await database.pool.query(SEED, [SIZES.dueRows, SIZES.finishedRows]);
  const { rows } = await database.pool.query('select tenant_id, id from waybill.endpoints order by id');
  endpoints = rows.map((row) => ({ tenantId: row.tenant_id, endpointId: row.id }));
  db = await explainingClient(database.url);
});

afterAll(async () => {
  await db.end();
  await database.drop();
});

/** What a plan read of a table, rows that a filter threw away included. */
function rowsRead(table: string): number {
  return db
    .lastPlan()
    .filter((node) => node['Relation Name'] === table && !node['Node Type'].includes('ModifyTable'))
    .reduce(
      (sum, node) =>
        sum + (node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0)) * node['Actual Loops'],
      0,
    );
}

function wholeTableReads(): PlanNode[] {
  const big = /^(delivery_queue|events_|deliveries_|attempts_)/;
  return db
    .lastPlan()
    .filter((node) => node['Node Type'] === 'Seq Scan' && node['Actual Loops'] > 0)
    .filter((node) => big.test(node['Relation Name'] ?? ''));
}

function settled(delivery: ClaimedDelivery, databaseNowMs: number) {
  const attempt = {
    outcome: 'succeeded',
    statusCode: 204,
    errorKind: null,
    error: null,
    responseBody: null,
    startedAtMs: databaseNowMs,
    durationMs: 1,
  } as const;
  const lesson = {
    succeeded: true,
    policy: { failures: 5, failureRatio: null, openMs: 30_000 },
    tripped: false,
    holdMs: null,
    gone: false,
    isProbe: false,
  };
  const endpointRevision = delivery.endpoint.revision;
  return { ...delivery, endpointRevision, attempt, outcome: { state: 'succeeded' } as const, lesson };
}

describe.each(['stale', 'fresh'])('with %s statistics, the plan of', (statistics) => {
  beforeAll(async () => {
    if (statistics === 'fresh') await database.pool.query('vacuum analyze');
    // Plans are kept by name: a new session plans anew.
    await db.end();
    db = await explainingClient(database.url);
  });

  it('[row 28] a claim of 32 reads about 32 queue rows through its own index, whatever lies behind them', async () => {
    const quotas = endpoints.slice(0, 16).map((endpoint) => ({ ...endpoint, quota: 2, watermarkMs: 0 }));
    const claim = await claimDeliveries(db, quotas, { claimToken: randomUUID(), leaseMs: 60_000 });
    expect(claim.deliveries).toHaveLength(32);
    const indexes = db
      .lastPlan()
      .filter((node) => node['Relation Name'] === 'delivery_queue' && node['Index Name']);
    expect(indexes.map((node) => node['Index Name'])).toEqual(['delivery_queue_claim']);
    // Once through the index, once by place for the update; the rows two earlier claims hold are passed over.
    expect(rowsRead('delivery_queue')).toBeLessThanOrEqual(32 * 4);
    expect(wholeTableReads()).toEqual([]);
    expect(db.lastPlan()[0]!['Shared Hit Blocks'] + db.lastPlan()[0]!['Shared Read Blocks']).toBeLessThan(
      2_000,
    );
  });

  it('a record reads only the rows it writes', async () => {
    const quotas = endpoints.slice(16, 48).map((endpoint) => ({ ...endpoint, quota: 2, watermarkMs: 0 }));
    const claim = await claimDeliveries(db, quotas, { claimToken: randomUUID(), leaseMs: 60_000 });
    const batch = claim.deliveries.map((delivery) => settled(delivery, claim.databaseNowMs));
    const { moved } = await recordAttempts(db, batch);
    expect(moved.size).toBe(64);
    expect(wholeTableReads()).toEqual([]);
    expect(rowsRead('delivery_queue')).toBeLessThanOrEqual(64 * 4);
  });

  it('discovery reads no more rows than its limit', async () => {
    const found = await discoverEndpoints(db, { lookBackMs: 86_400_000 }, 500);
    expect(found.endpoints.length).toBeGreaterThan(50);
    // Rows under a lease are passed over.
    expect(rowsRead('delivery_queue')).toBeLessThanOrEqual(500 + 200);
    expect(wholeTableReads()).toEqual([]);
  });

  it('a sweep steps from endpoint to endpoint without reading what lies between', async () => {
    const swept = await sweepEndpoints(db, { tenantId: NIL_UUID, endpointId: NIL_UUID }, 50);
    expect(swept.filter(({ dueAtMs }) => dueAtMs !== null)).toHaveLength(50);
    expect(rowsRead('delivery_queue')).toBeLessThanOrEqual(50 * 8);
    expect(wholeTableReads()).toEqual([]);
  });

  it('a step of the reaper reads its stretch of blocks and no other', async () => {
    await findLapsedClaims(db, { from: 0, until: 10 }, 100);
    expect(db.lastPlan().some((node) => node['Node Type'] === 'Tid Range Scan')).toBe(true);
    expect(rowsRead('delivery_queue')).toBeLessThanOrEqual(10 * 100);
  });
});
