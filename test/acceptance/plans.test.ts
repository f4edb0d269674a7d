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
import { expectWithinBudget } from '../support/budgets.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { explainingClient, type ExplainingClient, type PlanNode } from '../support/explain.js';
import { seedBacklog, standFortyDays } from '../support/seed-backlog.js';
import { SIZES } from '../support/sizes.js';

const TENANTS = 4;
const ENDPOINTS_PER_TENANT = 25;

let database: TestDatabase;
let db: ExplainingClient;
let endpoints: EndpointRef[];

beforeAll(async () => {
  database = await createTestDatabase();
  await standFortyDays(database.pool);
  await seedBacklog(database.pool, {
    tenants: TENANTS,
    endpointsPerTenant: ENDPOINTS_PER_TENANT,
    dueRows: SIZES.dueRows,
    finishedRows: SIZES.finishedRows,
    url: 'https://receiver.example',
  });
  const { rows } = await database.pool.query('select tenant_id, id from waybill.endpoints order by id');
  endpoints = rows.map((row) => ({ tenantId: row.tenant_id, endpointId: row.id }));
  db = await explainingClient(database.url);
}, SIZES.seedTimeoutMs);

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
    expectWithinBudget('claim_rows_per_delivery', rowsRead('delivery_queue') / 32);
    expect(wholeTableReads()).toEqual([]);
    const [plan] = db.lastPlan();
    const buffers = plan!['Shared Hit Blocks'] + plan!['Shared Read Blocks'];
    expectWithinBudget('claim_buffers_per_delivery', buffers / 32);
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
