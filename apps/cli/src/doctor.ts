import { countPartitionDays, measureQueue, measureReplicas, REPLICA_SILENT_MS } from '#outbox';
import {
  AppError,
  assertSchemaRevision,
  isDatabaseUrl,
  readConfig,
  type EncryptionKey,
  RECORD_MARGIN_MS,
  unknownSettings,
  type Queryable,
} from '#runtime';
import { openPool } from './with-database.js';

/** One line of the doctor's report. */
export interface Finding {
  readonly check:
    | 'config'
    | 'database'
    | 'schema'
    | 'partitions'
    | 'clock'
    | 'queue'
    | 'dispatchers'
    | 'encryption'
    | 'endpoints';
  readonly status: 'ok' | 'warn' | 'fail';
  readonly message: string;
}

const SERVER_VERSION_MIN = 150_000;
const PARTITION_DAYS_WARN = 7;
const CLOCK_WARN_MS = 2_000;
const CLOCK_FAIL_MS = 60_000;
const OLDEST_DUE_WARN_SECONDS = 60;

type Environment = Readonly<Record<string, string | undefined>>;

/** Looks at everything a Waybill installation stands on; each question is asked even when another fails. */
export async function examine(env: Environment): Promise<readonly Finding[]> {
  const config = examineConfig(env);
  const url = env['DATABASE_URL'];
  // Whatever is no URL of a database would be looked up as the name of a host.
  if (url === undefined || !isDatabaseUrl(url)) return [config];
  const pool = openPool(url);
  try {
    const database = await ask('database', () => examineDatabase(pool));
    if (database.status === 'fail') return [config, database];
    const schema = await ask('schema', () => examineSchema(pool));
    const clock = await ask('clock', () => examineClock(pool));
    if (schema.status === 'fail') return [config, database, schema, clock];
    const partitions = await ask('partitions', () => examinePartitions(pool));
    const queue = await ask('queue', () => examineQueue(pool));
    const dispatchers = await ask('dispatchers', () => examineDispatchers(pool));
    const most = [config, database, schema, partitions, clock, queue, dispatchers];
    if (config.status === 'fail') return most;
    const { leaseMs, encryptionKeys } = readConfig(env);
    const encryption = await ask('encryption', () => examineEncryption(pool, encryptionKeys));
    return [...most, encryption, await ask('endpoints', () => examineEndpoints(pool, leaseMs))];
  } finally {
    await pool.end();
  }
}

async function ask(check: Finding['check'], question: () => Promise<Finding>): Promise<Finding> {
  try {
    return await question();
  } catch (error) {
    const message = error instanceof Error ? error.message || error.name : String(error);
    return { check, status: 'fail', message };
  }
}

function examineConfig(env: Environment): Finding {
  try {
    readConfig(env);
    const unknown = unknownSettings(env).map(
      ({ name, nearest }) => `${name} is no setting${nearest === null ? '' : `; did you mean ${nearest}?`}`,
    );
    return unknown.length === 0
      ? { check: 'config', status: 'ok', message: 'every setting is acceptable' }
      : { check: 'config', status: 'warn', message: unknown.join('; ') };
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return { check: 'config', status: 'fail', message: error.message };
  }
}

async function examineDatabase(db: Queryable): Promise<Finding> {
  const { rows } = await db.query<{ version: string; number: number }>({
    text: `select current_setting('server_version') as version, current_setting('server_version_num')::integer as number`,
  });
  const { version, number } = rows[0]!;
  return number >= SERVER_VERSION_MIN
    ? { check: 'database', status: 'ok', message: `PostgreSQL ${version}` }
    : { check: 'database', status: 'fail', message: `PostgreSQL ${version}; 15 or later is needed` };
}

async function examineSchema(db: Queryable): Promise<Finding> {
  await assertSchemaRevision(db);
  return { check: 'schema', status: 'ok', message: 'at a revision this code runs on' };
}

async function examinePartitions(db: Queryable): Promise<Finding> {
  const days = await countPartitionDays(db);
  const message = `${days} day(s) of partitions stand, today included`;
  if (days === 0)
    return {
      check: 'partitions',
      status: 'fail',
      message: `${message}: nothing can be accepted. Run: waybill migrate`,
    };
  return { check: 'partitions', status: days < PARTITION_DAYS_WARN ? 'warn' : 'ok', message };
}

/** The database's clock decides what is due and what a signature says; this machine's should not be far from it. */
async function examineClock(db: Queryable): Promise<Finding> {
  const before = Date.now();
  const { rows } = await db.query<{ now_ms: number }>({
    text: 'select (extract(epoch from clock_timestamp()) * 1000)::double precision as now_ms',
  });
  const differenceMs = Math.round(rows[0]!.now_ms - (before + Date.now()) / 2);
  const message = `the database's clock differs from this machine's by ${differenceMs} ms`;
  if (Math.abs(differenceMs) >= CLOCK_FAIL_MS) return { check: 'clock', status: 'fail', message };
  return { check: 'clock', status: Math.abs(differenceMs) >= CLOCK_WARN_MS ? 'warn' : 'ok', message };
}

async function examineQueue(db: Queryable): Promise<Finding> {
  const queue = await measureQueue(db);
  const age = Math.round(queue.oldestDueAgeSeconds);
  const owed = queue.pending + queue.failed + queue.inProgress + queue.held;
  return {
    check: 'queue',
    status: age >= OLDEST_DUE_WARN_SECONDS ? 'warn' : 'ok',
    message: `${owed} owed, ${queue.due} due, ${queue.inProgress} under way, ${queue.held} held, ${queue.dead} dead; the oldest due for ${age} s`,
  };
}

async function examineDispatchers(db: Queryable): Promise<Finding> {
  const { living, isOwing } = await measureReplicas(db);
  const message = `${living} alive, by a heartbeat in the last ${REPLICA_SILENT_MS / 1000} s`;
  if (living > 0) return { check: 'dispatchers', status: 'ok', message };
  return isOwing
    ? { check: 'dispatchers', status: 'fail', message: `${message}: what is owed is not delivered` }
    : { check: 'dispatchers', status: 'warn', message: `${message}; nothing is owed` };
}

/** The wrong key, a key that should have been retired, and what no start has sealed yet. Nothing is written. */
async function examineEncryption(db: Queryable, keys: readonly EncryptionKey[]): Promise<Finding> {
  const { createKeyring, measureEncryption, verifyCanaries } = await import('#secrets');
  const keyring = createKeyring(keys);
  await verifyCanaries(db, keyring);
  const { clear, old, oldVersions } = await measureEncryption(db, keyring.newest);
  const faults = [
    ...(old === 0
      ? []
      : [`${old} data key(s) still need version ${oldVersions.join(', ')}. Run: waybill secrets rewrap`]),
    ...(clear === 0 ? [] : [`${clear} secret(s) stand in clear until a dispatcher starts`]),
  ];
  const message = [`secrets are sealed under version ${keyring.newest}`, ...faults].join('; ');
  return { check: 'encryption', status: faults.length > 0 ? 'warn' : 'ok', message };
}

/** A lease that was made shorter later may no longer hold what an endpoint was allowed. */
async function examineEndpoints(db: Queryable, leaseMs: number): Promise<Finding> {
  // Loading it costs 150 ms of CPU, which every other command would pay too.
  const { measureEndpoints } = await import('#endpoints');
  const timeoutMaxMs = leaseMs - RECORD_MARGIN_MS;
  const { total, gone, failing, circuitsOpen, tooSlow } = await measureEndpoints(db, timeoutMaxMs);
  const message =
    `${total} endpoint(s), ${circuitsOpen} circuit(s) open, ${gone + failing} disabled by Waybill ` +
    `(${gone} gone, ${failing} failing)`;
  const isTrouble = circuitsOpen + gone + failing > 0;
  if (tooSlow === 0) return { check: 'endpoints', status: isTrouble ? 'warn' : 'ok', message };
  const fault = `${tooSlow} with a timeout over the ${timeoutMaxMs} ms that WAYBILL_LEASE_MS leaves an attempt`;
  return { check: 'endpoints', status: 'warn', message: `${message}; ${fault}` };
}
