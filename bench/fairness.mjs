// What tenant B sees while others are in trouble: its p95 from the 201 to the arrival, beside 100k due on a hanging
// endpoint, 100k on a failing one, and twenty tenants that hang together. And what 100k rows behind an open circuit cost.
import { setTimeout as delay } from 'node:timers/promises';
import { startApp } from './support/child.mjs';
import { startProbe } from './support/probe.mjs';
import { firstTenant } from './support/product.mjs';
import { startReceiver } from './support/receiver.mjs';
import { printTable, quantile } from './support/report.mjs';
import { seedBacklog, seedEndpoints, seedTenants, settleTables } from './support/seed.mjs';

const FULL = { due: 100_000, perSecond: 5, ms: 30_000, warmUpMs: 3_000, patienceMs: 20_000, heldMs: 60_000 };
// Fewer due than there are slots: a smoke must not wait for the trouble it is about.
const SMOKE = { due: 40, perSecond: 20, ms: 200, warmUpMs: 50, patienceMs: 5_000, heldMs: 100 };
const SCENES = [
  { name: 'hang', mode: 'hang', tenants: 1 },
  { name: 'fail', mode: 'fail', tenants: 1 },
  { name: 'twenty', mode: 'hang', tenants: 20 },
];
// Only the end of a measurement would otherwise wait for what hangs.
const STOP_AT_ONCE = { WAYBILL_GRACE_MS: '0' };
const WRITES = `
select coalesce(sum(n_tup_ins + n_tup_upd + n_tup_del), 0)::double precision as writes from pg_stat_user_tables
where schemaname = 'waybill' and relname ~ '^(delivery_queue|deliveries(_[0-9]+)?)$'`;

/** `npm run bench -- fairness` */
export async function bench({ postgres, smoke }) {
  const size = smoke ? SMOKE : FULL;
  const receiver = await startReceiver();
  const probe = await startProbe();
  const waited = {};
  let stage = null;
  for (const scene of SCENES) {
    // Each scene has a database and apps of its own, but for a smoke, where starting them would be most of it.
    stage ??= await openStage(postgres, probe);
    waited[scene.name] = await measureBystander({ stage, receiver, probe, size }, scene);
    if (!smoke || scene === SCENES.at(-1)) {
      await stage.close();
      stage = null;
    }
  }
  const held = await measureHeldRows({ postgres, receiver, size });
  await probe.stop();
  await receiver.stop();
  printTable(
    'fairness: tenant B, milliseconds from its 201 to the arrival',
    Object.entries(waited).map(([beside, ms]) => ({
      beside,
      p50: quantile(ms, 0.5),
      p95: quantile(ms, 0.95),
      max: Math.max(...ms),
      events: ms.length,
    })),
  );
  return {
    ratios: {
      hang_p95_ms: quantile(waited.hang, 0.95),
      fail_p95_ms: quantile(waited.fail, 0.95),
      twenty_p95_ms: quantile(waited.twenty, 0.95),
      held_row_writes: held.writes,
    },
    absolute: {
      hang_p50_ms: quantile(waited.hang, 0.5),
      fail_p50_ms: quantile(waited.fail, 0.5),
      twenty_p50_ms: quantile(waited.twenty, 0.5),
      held_rows: size.due,
      held_seconds: size.heldMs / 1000,
      held_requests: held.requests,
    },
  };
}

/** Tenant B with its key and its endpoint, and both apps. */
async function openStage(postgres, probe) {
  const database = await postgres.createDatabase();
  const { tenantId, key } = await firstTenant(database.url);
  await seedEndpoints(database.pool, {
    tenantIds: [tenantId],
    count: 1,
    urls: [probe.url],
    subscribed: true,
  });
  const api = await startApp('api', database.url);
  return {
    databaseUrl: database.url,
    db: database.pool,
    apiUrl: api.url,
    key,
    dispatcher: null,
    async close() {
      await Promise.all([api.stop(), this.dispatcher?.stop()]);
      await database.drop();
    },
  };
}

async function measureBystander({ stage, receiver, probe, size }, { mode, tenants }) {
  await seedTrouble(stage.db, { tenants, due: size.due, urls: await receiver.open(tenants, mode) });
  stage.dispatcher ??= await startApp('dispatcher', stage.databaseUrl, STOP_AT_ONCE);
  const load = {
    apiUrl: stage.apiUrl,
    key: stage.key,
    perSecond: size.perSecond,
    patienceMs: size.patienceMs,
  };
  await probe.publish({ ...load, ms: size.warmUpMs });
  return probe.publish({ ...load, ms: size.ms });
}

/**
 * Rows of the queue and of deliveries that are written while a dispatcher runs beside a circuit that stays open: from
 * before its start until after its end, when every backend has told its counts.
 */
async function measureHeldRows({ postgres, receiver, size }) {
  const database = await postgres.createDatabase();
  const db = database.pool;
  const [endpoint] = await seedTrouble(db, {
    tenants: 1,
    due: size.due,
    urls: await receiver.open(1, 'fail'),
  });
  await db.query(
    `insert into waybill.circuits (tenant_id, endpoint_id, state, consecutive_failures, failing_since, open_until)
     values ($1, $2, 'open', 100, now(), now() + interval '1 hour')`,
    [endpoint.tenant_id, endpoint.id],
  );
  await db.query('select pg_stat_force_next_flush()');
  const { rows: before } = await db.query(WRITES);
  await receiver.reset();
  const dispatcher = await startApp('dispatcher', database.url, STOP_AT_ONCE);
  await delay(size.heldMs);
  await dispatcher.stop();
  const { count: requests } = await receiver.arrivals();
  const { rows: after } = await db.query(WRITES);
  await database.drop();
  return { writes: after[0].writes - before[0].writes, requests };
}

async function seedTrouble(db, { tenants, due, urls }) {
  const tenantIds = await seedTenants(db, tenants);
  const endpoints = await seedEndpoints(db, { tenantIds, count: tenants, urls });
  await seedBacklog(db, { endpoints, count: due });
  await settleTables(db);
  return endpoints;
}
