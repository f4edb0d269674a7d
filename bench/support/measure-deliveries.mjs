import { setTimeout as delay } from 'node:timers/promises';
import { processCpuUs, treeCpuUs } from './measure-cpu.mjs';

const LOOK_MS = 100;
const PATIENCE_MS = 60_000;
const LAST_RECORD = `select /* by the bench */ extract(epoch from max(recorded_at))::double precision * 1000 as ms from waybill.attempts`;
const OWED = 'select /* by the bench */ exists (select from waybill.delivery_queue) as owed';
const WAL = 'select /* by the bench */ pg_current_wal_insert_lsn() as lsn';
const STATEMENTS = `
select coalesce(sum(calls), 0)::double precision as calls from pg_stat_statements
where dbid = (select oid from pg_database where datname = current_database()) and query not like '%/* by the bench */%'`;

/**
 * Lets `senders` (started by `start`) deliver until `count` requests came or `boxMs` is over, and says what it took:
 * deliveries a second until the last arrival (or, where everything is recorded, the last record), and processor time by
 * process. Of the first `warmMs` after the first arrival nothing is counted: they are the compiler's, and a process of
 * a service has them once. With `drained` it waits until nothing is owed any more.
 */
export async function measureDeliveries({
  postgres,
  db,
  receiver,
  count,
  warmMs,
  boxMs,
  drained = false,
  start,
}) {
  await receiver.reset();
  const senders = await start();
  const first = await untilArrived(receiver, 1, 0);
  await delay(warmMs);
  await db.query('select pg_stat_statements_reset()');
  const { rows: before } = await db.query(WAL);
  const cpuBefore = cpuOf({ postgres, receiver, senders });
  const warm = warmMs > 0 ? await receiver.arrivals() : { ...first, count: 0, lastMs: first.firstMs };
  const arrivals = await untilArrived(receiver, count, boxMs);
  if (drained) await untilNothingIsOwed(db);
  const cpuAfter = cpuOf({ postgres, receiver, senders });
  const { rows: statements } = await db.query(STATEMENTS);
  const { rows: wal } = await db.query('select pg_current_wal_insert_lsn() - $1 as bytes', [before[0].lsn]);
  const recordedMs = drained ? (await db.query(LAST_RECORD)).rows[0].ms : 0;
  const delivered = arrivals.count - warm.count;
  const perDelivery = (total) => total / delivered;
  return {
    perSecond: delivered / ((Math.max(arrivals.lastMs, recordedMs) - warm.lastMs) / 1000),
    nodeUs: perDelivery(cpuAfter.senders - cpuBefore.senders),
    postgresUs: perDelivery(cpuAfter.postgres - cpuBefore.postgres),
    receiverUs: perDelivery(cpuAfter.receiver - cpuBefore.receiver),
    statements: perDelivery(statements[0].calls),
    walBytes: perDelivery(Number(wal[0].bytes)),
  };
}

async function untilArrived(receiver, count, boxMs) {
  const startedAt = performance.now();
  for (;;) {
    const arrivals = await receiver.arrivals();
    const waitedMs = performance.now() - startedAt;
    if (arrivals.count >= count || (arrivals.count > 0 && waitedMs > boxMs)) return arrivals;
    if (waitedMs > PATIENCE_MS + boxMs) throw new Error(`only ${arrivals.count} of ${count} deliveries came`);
    await delay(LOOK_MS);
  }
}

async function untilNothingIsOwed(db) {
  const deadline = performance.now() + PATIENCE_MS;
  while ((await db.query(OWED)).rows[0].owed) {
    if (performance.now() > deadline) throw new Error('the last deliveries were not recorded');
    await delay(LOOK_MS);
  }
}

function cpuOf({ postgres, receiver, senders }) {
  return {
    senders: senders.reduce((sum, { pid }) => sum + processCpuUs(pid), 0),
    postgres: treeCpuUs(postgres.pid),
    receiver: processCpuUs(receiver.pid),
  };
}
