import { createServer } from 'node:http';
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { type EmbeddedPostgres, migrate, startEmbeddedPostgres } from '#runtime';
import type { Pool } from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { bootDispatcher, stopEverything } from '../support/apps.js';
import { BUDGETS, expectWithinBudget } from '../support/budgets.js';
import { createTestPool } from '../support/database.js';
import { listenOnLoopback } from '../support/listen-on-loopback.js';
import { seedBacklog, standFortyDays } from '../support/seed-backlog.js';
import { waitFor } from '../support/wait-for.js';

const DELIVERIES = 4_000;
interface StatementCost {
  readonly calls: number;
  readonly page_images: number;
  readonly query: string;
}

/** Stands in each of the test's own statements, which are not the dispatcher's. */
const OWN = '/* of the test */';

describe('the ceilings in test/budgets.json', () => {
  it.each(Object.entries(BUDGETS))('%s is set for a reason and near what is measured', (_name, budget) => {
    const [first, ...later] = budget.ceilings;
    expect(first?.reason.length).toBeGreaterThan(20);
    for (const [index, { value, reason }] of later.entries()) {
      // Lowering is free.
      if (value > budget.ceilings[index]!.value) expect(reason.length, reason).toBeGreaterThan(20);
    }
    // Room for a busy machine, not for another engine.
    expect(budget.ceilings.at(-1)!.value).toBeLessThanOrEqual(3 * budget.measured);
  });
});

describe('draining a backlog, with 40 days standing, costs', () => {
  let folder: string;
  let server: EmbeddedPostgres;
  let pool: Pool;
  const receiver = createServer((request, response) => {
    request.resume().on('end', () => response.writeHead(204).end());
  });

  // A server of its own: WAL has no owner, and other files write some meanwhile. No page image and no vacuum is in it:
  // images come with checkpoints, of which there is none here. What is left is what the deliveries write.
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'waybill-budgets-'));
    // Under root the server runs as another account, which has to pass through here.
    chmodSync(folder, 0o755);
    server = await startEmbeddedPostgres({
      dataDir: join(folder, 'postgres'),
      durable: false,
      settings: {
        shared_preload_libraries: 'pg_stat_statements',
        autovacuum: 'off',
        checkpoint_timeout: '1h',
      },
    });
    await migrate(server.url);
    pool = createTestPool(server.url);
    await pool.query('create extension pg_stat_statements');
    await standFortyDays(pool);
    const port = await listenOnLoopback(receiver);
    await seedBacklog(pool, {
      tenants: 4,
      endpointsPerTenant: 4,
      dueRows: DELIVERIES,
      finishedRows: 0,
      url: `http://127.0.0.1:${port}`,
    });
    await pool.query('vacuum analyze');
    await drainIt();
  });

  afterAll(async () => {
    await stopEverything();
    receiver.closeAllConnections();
    receiver.close();
    await pool?.end();
    await server?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  let walBytes: number;
  let costs: StatementCost[];

  async function drainIt(): Promise<void> {
    const before = await readLsn();
    await pool.query('select pg_stat_statements_reset()');
    await bootDispatcher({ databaseUrl: server.url, env: { WAYBILL_LOG_LEVEL: 'warn' } });
    await waitFor(
      async () => (await pool.query(`select ${OWN} from waybill.delivery_queue limit 1`)).rowCount === 0,
      { what: 'an empty queue' },
    );
    const { rows } = await pool.query<StatementCost>(
      `select calls::integer, wal_fpi::integer as page_images, query from pg_stat_statements
       where query not like '%' || $1 || '%' and query not like '%pg_stat_statements%' order by calls desc`,
      [OWN],
    );
    costs = rows;
    const { rows: wal } = await pool.query<{ bytes: number }>(
      'select (pg_current_wal_lsn() - $1::pg_lsn)::integer as bytes',
      [before],
    );
    walBytes = wal[0]!.bytes;
  }

  async function readLsn(): Promise<string> {
    const { rows } = await pool.query<{ lsn: string }>('select pg_current_wal_lsn()::text as lsn');
    return rows[0]!.lsn;
  }

  it('few statements', async () => {
    const { rows } = await pool.query<{ delivered: number; days: number }>(
      `select (select count(*)::integer from waybill.deliveries where state = 'succeeded') as delivered,
        (select count(*)::integer from pg_inherits where inhparent = 'waybill.events'::regclass) as days`,
    );
    expect(rows).toEqual([{ delivered: DELIVERIES, days: 40 }]);
    const sent = costs.reduce((sum, one) => sum + one.calls, 0);
    // Claims and records are among them, so something was counted.
    expect(
      costs.filter(({ query }) => /waybill\.attempts|waybill\.events/.test(query)).length,
    ).toBeGreaterThan(1);
    const details = costs.map(
      (one) => `${one.calls} × ${one.query.trim().slice(0, 100).replaceAll(/\s+/g, ' ')}`,
    );
    expectWithinBudget('statements_per_delivery', sent / DELIVERIES, details.slice(0, 10).join('\n'));
  });

  it('little WAL', () => {
    expect(costs.reduce((sum, one) => sum + one.page_images, 0)).toBe(0);
    expectWithinBudget('wal_bytes_per_delivery', walBytes / DELIVERIES);
  });
});
