import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../../../../test/support/database.js';
import { recordStatements } from '../../../../test/support/recorded-statements.js';
import { seedBacklog } from '../../../../test/support/seed-backlog.js';
import { FULL } from '../../../../test/support/sizes.js';
import { waitFor } from '../../../../test/support/wait-for.js';
import { Lookout } from './lookout.js';

const TENANTS = 20;
const ENDPOINTS = FULL ? 20_000 : 2_500;
/** Endpoints of one step. */
const STEP = 1_000;
const POLL_MS = 10;

describe('the lookout', () => {
  let database: TestDatabase;

  beforeAll(async () => {
    database = await createTestDatabase();
    await seedBacklog(database.pool, {
      tenants: TENANTS,
      endpointsPerTenant: ENDPOINTS / TENANTS,
      dueRows: ENDPOINTS,
      finishedRows: 0,
      url: 'http://127.0.0.1:9/',
    });
  });
  afterAll(() => database.drop());

  /** A lookout with a short poll, what it has seen, and what it has asked. */
  function openLookout(slackMs = 1_000) {
    const { db, statements } = recordStatements(database.pool);
    const seen = new Map<string, number>();
    const lookout = new Lookout(db, POLL_MS, slackMs, ({ endpointId }, dueAtMs) =>
      seen.set(endpointId, dueAtMs),
    );
    return {
      lookout,
      seen,
      asked: (file: string) => statements.filter((statement) => statement.file === file).length,
      look: () => lookout.look(performance.now()),
    };
  }

  it('sees every endpoint that was owed before it began, in steps of bounded size and without a pause', async () => {
    const { lookout, seen, asked, look } = openLookout();
    const steps = Math.ceil((ENDPOINTS + 1) / STEP);
    for (let turn = 0; turn < steps; turn += 1) {
      expect(lookout.nextAtMs).toBeLessThanOrEqual(performance.now());
      await look();
    }
    expect(seen.size).toBe(ENDPOINTS);
    expect(asked('sweep-endpoints')).toBe(steps);
  });

  it('reads of what was due before it began only the last second, row by row', async () => {
    const { seen, asked, look } = openLookout();
    // One turn: discovery, and one step of the sweep, which sees 1,000.
    await look();
    expect(asked('discover-endpoints')).toBe(1);
    // Rows stand 10 ms apart: 100 to a second.
    expect(seen.size).toBeLessThanOrEqual(STEP + 100);
    await look();
    await look();
    expect(asked('discover-endpoints')).toBeLessThanOrEqual(3);
  });

  it('finds by its sweep what was committed too late for discovery', async () => {
    const { seen, asked, look } = openLookout(0);
    const turnUntil = (what: string, found: () => boolean) =>
      waitFor(async () => (await look(), found()), { what });
    await turnUntil('the first round', () => seen.size === ENDPOINTS);
    const { rows } = await database.pool.query<{ tenant_id: string; endpoint_id: string }>(
      'select tenant_id, endpoint_id from waybill.delivery_queue limit 1',
    );
    const { tenant_id, endpoint_id } = rows[0]!;
    const late = await database.pool.connect();
    await late.query('begin');
    await late.query(
      `insert into waybill.delivery_queue (tenant_id, event_id, endpoint_id, delivery_id, due_at, expires_at, payload_bytes)
       values ($1, $2, $3, $4, now() - interval '1 hour', now() + interval '1 day', 2)`,
      [tenant_id, randomUUID(), endpoint_id, randomUUID()],
    );
    const looks = asked('discover-endpoints') + 3;
    await turnUntil('looks past it', () => asked('discover-endpoints') >= looks);
    const before = seen.get(endpoint_id)!;
    expect(seen.size).toBe(ENDPOINTS);
    await late.query('commit');
    late.release();
    await turnUntil('the late commit', () => seen.get(endpoint_id)! < before - 3_000_000);
  });

  it('looks at everything anew when it has to start over, at once', async () => {
    const { lookout, seen, asked, look } = openLookout();
    await waitFor(async () => (await look(), seen.size === ENDPOINTS), { what: 'the first round' });
    seen.clear();
    lookout.startOver();
    const sweeps = asked('sweep-endpoints');
    const steps = Math.ceil((ENDPOINTS + 1) / STEP);
    for (let turn = 0; turn < steps; turn += 1) await look();
    expect(seen.size).toBe(ENDPOINTS);
    expect(asked('sweep-endpoints')).toBe(sweeps + steps);
  });

  it('goes through more than it may read at once page by page, and passes nothing over', async () => {
    const { seen, asked, look } = openLookout(86_400_000);
    const pages = Math.ceil((ENDPOINTS + 2) / STEP);
    for (let turn = 0; turn < pages; turn += 1) await look();
    expect(seen.size).toBe(ENDPOINTS);
    expect(asked('discover-endpoints')).toBe(pages);
  });
});
