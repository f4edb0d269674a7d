import { randomUUID } from 'node:crypto';

import { claimDeliveries, type EndpointRef } from '#outbox';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { expectSettled } from '../support/expect-settled.js';
import { explainingClient, type ExplainingClient } from '../support/explain.js';
import { seedBacklog } from '../support/seed-backlog.js';
import { SIZES } from '../support/sizes.js';
import { openStage } from '../support/stage.js';
import { DISCOVER } from '../support/statements.js';
import { waitFor } from '../support/wait-for.js';

describe('a claim of a held endpoint', () => {
  let database: TestDatabase;
  let db: ExplainingClient;
  let endpoint: EndpointRef;

  beforeAll(async () => {
    database = await createTestDatabase();
    const dueRows = SIZES.rowsBehindOpenCircuit / 10;
    const spread = { tenants: 1, endpointsPerTenant: 1, dueRows, finishedRows: 0, url: 'http://127.0.0.1:9' };
    await seedBacklog(database.pool, spread);
    const { rows } = await database.pool.query<{ tenant_id: string; id: string }>(
      'select tenant_id, id from waybill.endpoints',
    );
    endpoint = { tenantId: rows[0]!.tenant_id, endpointId: rows[0]!.id };
    db = await explainingClient(database.url);
  });
  afterAll(async () => {
    await db.end();
    await database.drop();
  });

  /** Claims, and gives what was taken and what the plan read of the queue. */
  async function claim(): Promise<{ taken: number; rowsRead: number; nodes: number }> {
    const options = { claimToken: randomUUID(), leaseMs: 60_000 };
    const { deliveries } = await claimDeliveries(db, [{ ...endpoint, quota: 10, watermarkMs: 0 }], options);
    const nodes = db.lastPlan().filter((node) => node['Relation Name'] === 'delivery_queue');
    const rowsRead = nodes.reduce(
      (sum, node) =>
        sum + (node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0)) * node['Actual Loops'],
      0,
    );
    return { taken: deliveries.length, rowsRead, nodes: nodes.length };
  }

  it.each([
    ['is paused', `update waybill.endpoints set status = 'paused'`],
    ['is disabled', `update waybill.endpoints set status = 'disabled'`],
    ['is deleted', `update waybill.endpoints set status = 'enabled', deleted_at = now()`],
    [
      'belongs to a suspended tenant',
      'with restored as (update waybill.endpoints set deleted_at = null) update waybill.tenants set suspended_at = now()',
    ],
    [
      'has an open circuit',
      `with resumed as (update waybill.tenants set suspended_at = null)
       insert into waybill.circuits (tenant_id, endpoint_id, state, open_until)
       select tenant_id, id, 'open', now() + interval '1 hour' from waybill.endpoints`,
    ],
    [
      'must wait for its Retry-After',
      `update waybill.circuits set state = 'closed', open_until = null, held_until = now() + interval '1 hour'`,
    ],
  ])('[row 46] [row 47] reads and writes none of its rows: it %s', async (_what, change) => {
    await database.pool.query(change);
    const { taken, rowsRead, nodes } = await claim();
    expect({ taken, rowsRead }).toEqual({ taken: 0, rowsRead: 0 });
    expect(nodes).toBeGreaterThan(0);
  });

  it('reads them again once nothing holds it', async () => {
    await database.pool.query('update waybill.circuits set held_until = null');
    const { taken, rowsRead } = await claim();
    expect(taken).toBe(10);
    expect(rowsRead).toBeGreaterThanOrEqual(10);
  });
});

it('the deliveries of a suspended tenant are held, and go on when it is resumed', async ({
  onTestFinished,
}) => {
  const stage = await openStage(onTestFinished);
  const dispatcher = await stage.boot();
  await stage.pool.query('update waybill.tenants set suspended_at = now()');
  await stage.publish(5);
  const looks = () => [...stage.proxy.statements].find(([sql]) => sql.includes(DISCOVER))?.[1] ?? 0;
  const enough = looks() + 20;
  await waitFor(() => looks() >= enough, { what: 'twenty more looks' });
  expect(stage.receiver.requests).toEqual([]);
  const { rows } = await stage.pool.query(
    'select sum(attempt_count)::integer as attempts, count(lease_until)::integer as leased from waybill.delivery_queue',
  );
  expect(rows).toEqual([{ attempts: 0, leased: 0 }]);
  await stage.pool.query('update waybill.tenants set suspended_at = null');
  await stage.receiver.waitFor(5);
  await expectSettled(stage, { attemptLimit: 1 });
  expect(dispatcher.logs().filter(({ level }) => Number(level) >= 40)).toEqual([]);
});
