import pg from 'pg';

/** Anything that runs one statement: a pool, a client, or a transaction's client. */
export interface Queryable {
  query<Row extends pg.QueryResultRow>(statement: Statement): Promise<pg.QueryResult<Row>>;
}

/** One statement with its parameters; a named one is prepared once per connection. */
export interface Statement {
  readonly name?: string;
  readonly text: string;
  readonly values?: unknown[];
}

/** What a connection may do; docs/reference/roles.md says of each what it reaches. */
export type DatabaseRole =
  'waybill_owner' | 'waybill_app' | 'waybill_intake' | 'waybill_dispatcher' | 'waybill_operator';

/** A pool: each statement on any free connection, or several on one. */
export type Database = pg.Pool;

/** Runs statements in one transaction: committed when `run` resolves, rolled back when it rejects. */
export async function withTransaction<Result>(
  pool: Database,
  run: (tx: Queryable) => Promise<Result>,
): Promise<Result> {
  const client = await pool.connect();
  let broken: Error | undefined;
  try {
    await client.query('begin');
    const result = await run(client);
    await client.query('commit');
    return result;
  } catch (error) {
    // A connection that broke, or that cannot even roll back, is thrown away: its transaction ends with it.
    if (isDatabaseUnavailable(error)) broken = error as Error;
    else await client.query('rollback').catch((failure: Error) => (broken = failure));
    throw error;
  } finally {
    client.release(broken);
  }
}

export interface PoolOptions {
  readonly url: string;
  /** What its sessions may do, whoever's login the URL names; null leaves them what the login may. */
  readonly role: DatabaseRole | null;
  readonly max: number;
  /** Seen in pg_stat_activity, so that an operator knows whose connection it is. */
  readonly applicationName: string;
  readonly statementTimeoutMs: number;
  readonly lockTimeoutMs: number;
  /** Queue statements are planned once for all arrays: (40 partitions: 83 → 9 ms a record). */
  readonly genericPlans?: boolean;
  /**
   * Rows are to come in an index's order: before the first ANALYZE a claim read an endpoint's whole backlog through the
   * primary key and sorted it (300,000 due rows: 229 ms against 9).
   */
  readonly indexOrder?: boolean;
  /** Called for a connection that breaks while idle; the pool replaces it. */
  readonly onIdleError: (error: Error) => void;
}

/** How much longer than the server's own limit we wait before a statement counts as lost. */
export const SILENCE_MS = 5_000;

/**
 * A pool of plain `pg` connections whose sessions always carry a statement, lock and idle-in-transaction timeout.
 * A connection that dies while idle is reported and replaced, never thrown: without a listener it would end the
 * process.
 */
export function createPool(options: PoolOptions): pg.Pool {
  const settings = [
    `-c statement_timeout=${options.statementTimeoutMs}`,
    `-c lock_timeout=${options.lockTimeoutMs}`,
    '-c idle_in_transaction_session_timeout=10000',
    '-c timezone=UTC',
  ];
  if (options.role !== null) settings.push(`-c role=${options.role}`);
  if (options.genericPlans) settings.push('-c plan_cache_mode=force_generic_plan');
  if (options.indexOrder) settings.push('-c enable_sort=off');
  const pool = new pg.Pool({
    connectionString: options.url,
    max: options.max,
    application_name: options.applicationName,
    options: settings.join(' '),
    connectionTimeoutMillis: 5_000,
    idleTimeoutMillis: 30_000,
    keepAlive: true,
    // The server ends a statement at its own timeout; this one is for a server that no longer answers at all.
    query_timeout: options.statementTimeoutMs + SILENCE_MS,
  });
  pool.on('error', options.onIdleError);
  pool.on('connect', (client) => client.on('error', options.onIdleError));
  return pool;
}

const UNAVAILABLE = new Set([
  '57P01',
  '57P02',
  '57P03',
  '53300',
  '53100',
  '53200',
  '25006',
  '08000',
  '08003',
  '08006',
  '08001',
  '08004',
]);
const NETWORK = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'EPIPE',
  'ETIMEDOUT',
  'ENOTFOUND',
  'EAI_AGAIN',
  'ENETUNREACH',
  'EHOSTUNREACH',
]);

/** True when an error means that the database could not be reached or could not do its work, not that we asked for nonsense. */
export function isDatabaseUnavailable(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const code = sqlState(error);
  if (code !== null && (UNAVAILABLE.has(code) || NETWORK.has(code))) return true;
  // pg and pg-pool report these without a code.
  return /Connection terminated|timeout exceeded when trying to connect|Query read timeout|not queryable|Query runner already released|Client has encountered a connection error|SSL connection/.test(
    error.message,
  );
}

/** The SQLSTATE or system error code an error carries, looking through TypeORM's wrapper. */
export function sqlState(error: unknown): string | null {
  if (typeof error !== 'object' || error === null) return null;
  const { code, driverError } = error as { code?: unknown; driverError?: unknown };
  if (typeof code === 'string') return code;
  return driverError === undefined ? null : sqlState(driverError);
}
