// Events accepted a second: single ones on 64 connections against a transaction a request on Express, and batches of
// 100 against a bare `unnest` of the same rows. Every answer comes after its commit.
import { startApp, startBenchChild } from './support/child.mjs';
import { processCpuUs, treeCpuUs } from './support/measure-cpu.mjs';
import { firstTenant } from './support/product.mjs';
import { median, printTable } from './support/report.mjs';
import { EVENT_TYPE, seedEndpoints } from './support/seed.mjs';

const FULL = { ms: 5_000, warmUpMs: 1_500 };
const SMOKE = { ms: 200, warmUpMs: 50 };
const CONNECTIONS = 64;
const BATCH = 100;
const BATCH_CONNECTIONS = 4;
const URL_NOBODY_CALLS = 'http://127.0.0.1:9/hook';
const PAYLOAD = JSON.stringify({ event: EVENT_TYPE, text: 'waybill '.repeat(33) });
const EVENT = `{"event_type":"${EVENT_TYPE}","payload":${PAYLOAD}}`;
const EVENTS = `{"events":[${Array.from({ length: BATCH }, () => EVENT).join(',')}]}`;

/** `npm run bench -- ingest` */
export async function bench({ postgres, smoke, rounds }) {
  const size = smoke ? SMOKE : FULL;
  const load = await startBenchChild('support/load-process.mjs');
  const runs = { single: [], transaction: [], batch: [], unnest: [] };
  for (let round = 1; round <= rounds; round += 1) {
    const product = await measureProduct(postgres, load, size);
    const rivals = await measureRivals(postgres, load, size);
    for (const [name, run] of Object.entries({ ...product, ...rivals })) {
      runs[name].push(run);
      console.log(`round ${round}: ${name}: ${Math.round(run.perSecond)} events/s`);
    }
  }
  await load.stop();
  return report(runs);
}

async function measureProduct(postgres, load, size) {
  const { database, key } = await openDatabase(postgres);
  const api = await startApp('api', database.url);
  const post = (path, body, connections) =>
    postFor(load, size, {
      url: `${api.url}${path}`,
      headers: { authorization: `Bearer ${key}` },
      body,
      connections,
    });
  const pids = { server: api.pid, postgres: postgres.pid, load: load.pid };
  const single = await withCpu(pids, 1, () => post('/v1/events', EVENT, CONNECTIONS));
  const batch = await withCpu(pids, BATCH, () => post('/v1/events/batch', EVENTS, BATCH_CONNECTIONS));
  await api.stop();
  await database.drop();
  return { single, batch };
}

async function measureRivals(postgres, load, size) {
  const { database, tenantId, endpointId } = await openDatabase(postgres);
  const target = { databaseUrl: database.url, tenantId, endpointId };
  const server = await startBenchChild('rivals/express-transaction.mjs');
  const url = await server.ask('serve', target);
  const transaction = await withCpu({ server: server.pid, postgres: postgres.pid, load: load.pid }, 1, () =>
    postFor(load, size, { url, headers: {}, body: EVENT, connections: CONNECTIONS }),
  );
  await server.stop();
  const inserter = await startBenchChild('rivals/unnest.mjs');
  const insert = (ms) =>
    inserter.ask('insert', {
      ...target,
      eventType: EVENT_TYPE,
      payload: PAYLOAD,
      batch: BATCH,
      connections: BATCH_CONNECTIONS,
      ms,
    });
  await insert(size.warmUpMs);
  const unnest = await insert(size.ms);
  await inserter.stop();
  await database.drop();
  return { transaction, unnest };
}

async function postFor(load, { ms, warmUpMs }, request) {
  await load.ask('post', { ...request, ms: warmUpMs });
  return load.ask('post', { ...request, ms });
}

/** Adds processor time an event, warm-up included on both sides of the division. */
async function withCpu({ server, postgres, load }, eventsAnAnswer, measure) {
  const before = [processCpuUs(server), treeCpuUs(postgres), processCpuUs(load)];
  const run = await measure();
  const after = [processCpuUs(server), treeCpuUs(postgres), processCpuUs(load)];
  const [serverUs, postgresUs, loadUs] = after.map(
    (us, place) => (us - before[place]) / (run.count * eventsAnAnswer),
  );
  return { ...run, perSecond: run.perSecond * eventsAnAnswer, serverUs, postgresUs, loadUs };
}

async function openDatabase(postgres) {
  const database = await postgres.createDatabase();
  const { tenantId, key } = await firstTenant(database.url);
  const [endpoint] = await seedEndpoints(database.pool, {
    tenantIds: [tenantId],
    count: 1,
    urls: [URL_NOBODY_CALLS],
    subscribed: true,
  });
  return { database, tenantId, key, endpointId: endpoint.id };
}

function report(runs) {
  const of = (name, field) => median(runs[name].map((run) => run[field]));
  const ratio = (name, other) =>
    median(runs[name].map((run, round) => run.perSecond / runs[other][round].perSecond));
  const row = (name, what) => ({
    what,
    'events/s': of(name, 'perSecond'),
    'p50 ms': of(name, 'p50Ms'),
    'p99 ms': of(name, 'p99Ms'),
    'server µs': of(name, 'serverUs'),
    'PostgreSQL µs': of(name, 'postgresUs'),
    'load µs': of(name, 'loadUs'),
  });
  printTable('ingest: medians; µs of processor time per event', [
    row('single', 'Waybill, single events'),
    row('transaction', 'Express, a transaction each'),
    row('batch', `Waybill, batches of ${BATCH}`),
    { what: 'bare unnest', 'events/s': of('unnest', 'perSecond') },
  ]);
  return {
    ratios: { single_vs_tx: ratio('single', 'transaction'), batch_vs_unnest: ratio('batch', 'unnest') },
    absolute: {
      single_per_second: of('single', 'perSecond'),
      single_p50_ms: of('single', 'p50Ms'),
      single_p99_ms: of('single', 'p99Ms'),
      single_server_us: of('single', 'serverUs'),
      single_postgres_us: of('single', 'postgresUs'),
      tx_per_second: of('transaction', 'perSecond'),
      batch_events_per_second: of('batch', 'perSecond'),
      unnest_events_per_second: of('unnest', 'perSecond'),
    },
  };
}
