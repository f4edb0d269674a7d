// Sustained deliveries a second with a backlog, everything recorded, beside the rivals in the same run.
import { startApp, startBenchChild } from './support/child.mjs';
import { measureDeliveries } from './support/measure-deliveries.mjs';
import { startReceiver } from './support/receiver.mjs';
import { median, printTable } from './support/report.mjs';
import { seedBacklog, seedEndpoints, seedTenants, settleTables } from './support/seed.mjs';

const FULL = { deliveries: 90_000, serial: 60_000, warmMs: 3_000, boxMs: 8_000, origins: 64, tenants: 4 };
const SMOKE = { deliveries: 300, serial: 300, warmMs: 0, boxMs: 300, origins: 64, tenants: 4 };
const IN_FLIGHT = 128;

/** In the order in which they run in each round. `drained` ones deliver the whole backlog, others until their time is up. */
const CONTENDERS = [
  { name: 'raw undici', rival: 'raw' },
  { name: 'Waybill, 1 dispatcher', apps: 1, drained: true },
  { name: 'Waybill, 2 dispatchers', apps: 2, drained: true },
  { name: 'graphile-worker, bare', rival: 'graphile-worker' },
  { name: 'graphile-worker, recording', rival: 'graphile-worker', env: { BENCH_RECORD: '1' } },
  { name: 'pg-boss, bare', rival: 'pg-boss' },
  { name: 'serial workers', rival: 'serial-workers', backlog: 'serial' },
];

/** `npm run bench -- deliver` */
export async function bench({ postgres, smoke, rounds }) {
  const size = smoke ? SMOKE : FULL;
  const receiver = await startReceiver();
  const urls = await receiver.open(size.origins);
  const runs = new Map(CONTENDERS.map(({ name }) => [name, []]));
  for (let round = 1; round <= rounds; round += 1) {
    for (const contender of CONTENDERS) {
      const run = await measure({ postgres, receiver, urls, size }, contender);
      runs.get(contender.name).push(run);
      console.log(`round ${round}: ${contender.name}: ${Math.round(run.perSecond)} deliveries/s`);
    }
  }
  await receiver.stop();
  return report(runs);
}

async function measure({ postgres, receiver, urls, size }, contender) {
  const count = size[contender.backlog ?? 'deliveries'];
  const database = await postgres.createDatabase();
  const db = database.pool;
  const tenantIds = await seedTenants(db, size.tenants);
  const endpoints = await seedEndpoints(db, { tenantIds, count: urls.length, urls });
  await seedBacklog(db, { endpoints, count });
  await settleTables(db);
  const rival = contender.rival && (await startRival(contender, { databaseUrl: database.url, urls, count }));
  const dispatchers = () =>
    Promise.all(Array.from({ length: contender.apps }, () => startApp('dispatcher', database.url)));
  let senders = [];
  const run = await measureDeliveries({
    postgres,
    db,
    receiver,
    count,
    warmMs: size.warmMs,
    boxMs: contender.drained ? Infinity : size.boxMs,
    drained: contender.drained,
    start: async () => (senders = await (rival ? rival.go() : dispatchers())),
  });
  for (const sender of senders) await sender.stop();
  await database.drop();
  return run;
}

async function startRival({ rival, env }, input) {
  const child = await startBenchChild(`rivals/${rival}.mjs`, env);
  await child.ask('prepare', input);
  return {
    async go() {
      await child.ask('go', { inFlight: IN_FLIGHT });
      return [child];
    },
  };
}

function report(runs) {
  const of = (name, field) => median(runs.get(name).map((run) => run[field]));
  const rate = (name) => of(name, 'perSecond');
  // Ratios are made within a round, whose minutes were alike, and then their median is taken.
  const ratio = (name, other) =>
    median(runs.get(name).map((run, round) => run.perSecond / runs.get(other)[round].perSecond));
  printTable(
    'deliver: medians; µs of processor time per delivery',
    CONTENDERS.map(({ name }) => ({
      contender: name,
      'deliveries/s': rate(name),
      'Node µs': of(name, 'nodeUs'),
      'PostgreSQL µs': of(name, 'postgresUs'),
      'receiver µs': of(name, 'receiverUs'),
      statements: of(name, 'statements'),
      'WAL bytes': of(name, 'walBytes'),
    })),
  );
  const one = 'Waybill, 1 dispatcher';
  return {
    ratios: {
      vs_raw: ratio(one, 'raw undici'),
      vs_serial: ratio(one, 'serial workers'),
      vs_graphile_recorded: ratio(one, 'graphile-worker, recording'),
      vs_graphile_bare: ratio(one, 'graphile-worker, bare'),
      vs_pgboss: ratio(one, 'pg-boss, bare'),
      two_vs_one: ratio('Waybill, 2 dispatchers', one),
      cpu_us: of(one, 'nodeUs') + of(one, 'postgresUs'),
      statements_per_delivery: of(one, 'statements'),
      wal_bytes_per_delivery: of(one, 'walBytes'),
    },
    absolute: {
      waybill_per_second: rate(one),
      waybill_two_per_second: rate('Waybill, 2 dispatchers'),
      waybill_node_us: of(one, 'nodeUs'),
      waybill_postgres_us: of(one, 'postgresUs'),
      raw_per_second: rate('raw undici'),
      raw_node_us: of('raw undici', 'nodeUs'),
      graphile_bare_per_second: rate('graphile-worker, bare'),
      graphile_recorded_per_second: rate('graphile-worker, recording'),
      pgboss_per_second: rate('pg-boss, bare'),
      serial_per_second: rate('serial workers'),
      receiver_us: of(one, 'receiverUs'),
    },
  };
}
