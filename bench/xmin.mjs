// Does a transaction that stays open elsewhere slow the queue down? 150k deliveries under a held snapshot: the time of
// a claim and of a discovery in the last fifth against the first.
import { setTimeout as delay } from 'node:timers/promises';
import { startApp } from './support/child.mjs';
import { claim, discover } from './support/product.mjs';
import { createQueuePool } from './support/queue-pool.mjs';
import { startReceiver } from './support/receiver.mjs';
import { median } from './support/report.mjs';
import { seedBacklog, seedEndpoints, seedTenants, settleTables } from './support/seed.mjs';

const FULL = { deliveries: 150_000, origins: 64, tenants: 4, lookMs: 200 };
const SMOKE = { deliveries: 600, origins: 16, tenants: 4, lookMs: 20 };
/** The scheduler looks back over its poll time and its slack. */
const LOOK_BACK_MS = 2_000;
const PATIENCE_MS = 120_000;
const NOBODY = '00000000-0000-7000-8000-000000000000';

/** `npm run bench -- xmin` */
export async function bench({ postgres, smoke }) {
  const size = smoke ? SMOKE : FULL;
  const database = await postgres.createDatabase();
  const db = database.pool;
  const receiver = await startReceiver();
  const tenantIds = await seedTenants(db, size.tenants);
  const urls = await receiver.open(size.origins);
  const endpoints = await seedEndpoints(db, { tenantIds, count: urls.length, urls });
  await seedBacklog(db, { endpoints, count: size.deliveries });
  await settleTables(db);
  const holder = await db.connect();
  await holder.query('begin isolation level repeatable read');
  await holder.query('select count(*) from waybill.tenants');
  const samples = await deliverAndSample(database, receiver, size);
  await holder.query('commit');
  holder.release();
  await receiver.stop();
  await database.drop();
  return report(samples, size);
}

async function deliverAndSample({ url, pool }, receiver, { deliveries, lookMs }) {
  const queue = createQueuePool(url);
  const claimId = await statementId(pool, queue);
  const dispatcher = await startApp('dispatcher', url);
  const samples = [];
  const deadline = performance.now() + PATIENCE_MS;
  for (let last = await claimTotals(pool, claimId); ;) {
    await delay(lookMs);
    const startedAt = performance.now();
    await discover(queue, { lookBackMs: LOOK_BACK_MS });
    const discoverMs = performance.now() - startedAt;
    const totals = await claimTotals(pool, claimId);
    const { count } = await receiver.arrivals();
    const calls = totals.calls - last.calls;
    if (calls > 0) {
      const claimMs = (totals.ms - last.ms) / calls;
      const rowUs = ((totals.ms - last.ms) * 1000) / Math.max(1, totals.rows - last.rows);
      samples.push({ delivered: count, claimMs, rowUs, discoverMs });
    }
    last = totals;
    if (count >= deliveries) break;
    if (performance.now() > deadline) throw new Error(`only ${count} of ${deliveries} deliveries came`);
  }
  await dispatcher.stop();
  await queue.end();
  return samples;
}

/** The dispatcher's claims are known by the statement's id: one claim of ours for nobody's endpoint tells which it is. */
async function statementId(pool, queue) {
  await pool.query('select pg_stat_statements_reset()');
  await claim(queue, [{ tenant_id: NOBODY, id: NOBODY }], 1);
  const { rows } = await pool.query(
    `select queryid from pg_stat_statements where query like '%waybill.delivery_queue%' and query like '%update%'`,
  );
  if (rows.length !== 1) throw new Error(`a claim is ${rows.length} statements, not one`);
  return rows[0].queryid;
}

async function claimTotals(pool, id) {
  const { rows } = await pool.query(
    `select sum(calls)::double precision as calls, sum(total_exec_time) as ms, sum(rows)::double precision as rows
     from pg_stat_statements where queryid = $1`,
    [id],
  );
  return rows[0];
}

function report(samples, { deliveries }) {
  const first = samples.filter(({ delivered }) => delivered <= deliveries / 5);
  const last = samples.filter(({ delivered }) => delivered > (deliveries * 4) / 5);
  // A smoke is over before there are fifths.
  const start = first.length > 0 ? first : samples;
  const end = last.length > 0 ? last : samples;
  const of = (part, field) => median(part.map((sample) => sample[field]));
  return {
    ratios: { claim_end_vs_start: of(end, 'claimMs') / of(start, 'claimMs') },
    absolute: {
      discover_end_vs_start: of(end, 'discoverMs') / of(start, 'discoverMs'),
      claim_row_end_vs_start: of(end, 'rowUs') / of(start, 'rowUs'),
      claim_start_ms: of(start, 'claimMs'),
      claim_end_ms: of(end, 'claimMs'),
      discover_start_ms: of(start, 'discoverMs'),
      discover_end_ms: of(end, 'discoverMs'),
      deliveries,
    },
  };
}
