import type pg from 'pg';
import { acceptEvents, type AcceptResult, type EventInput } from '#outbox';
import { AppError, createPool, isDatabaseUnavailable, sqlState, type Config } from '#runtime';
import type { KeyHolder } from '#tenants';
import { createAuthenticate, type Authenticate } from '../auth/authenticate.js';
import { createGroupAccept, type Accept } from './group-accept.js';
import { Turns } from './turns.js';

/**
 * The only way to the role that works for many tenants at once: whose key a request brings, and storing its events. No
 * handler gets at the pools behind it.
 */
export interface Intake {
  /** Whose key a request brings, looked up together with those of requests that come at the same time. */
  readonly authenticate: Authenticate;
  /** Stores an event without an idempotency key, together with others that come at the same time. */
  readonly accept: Accept;
  /** Stores an event under its idempotency key. */
  acceptKeyed(input: EventInput): Promise<AcceptResult>;
  /** Stores a batch in one transaction, which `settle` ends by throwing; it sees each result with its place. */
  acceptBatch<Item>(
    inputs: readonly EventInput[],
    settle: (result: AcceptResult, place: number) => Item,
  ): Promise<readonly Item[]>;
  close(): Promise<void>;
}

/**
 * A key that another transaction holds makes its requests wait in turns of this long, on four connections of their own:
 * measured, one held key kept 127 strangers waiting for 3.5 s when all shared one lane.
 */
const KEY_LOCK_WAIT_MS = 200;
const KEYED_CONNECTIONS = 4;
/** A batch is one statement however far it fans out: 1,000 events to 300 endpoints each took over 10 s. */
const BATCH_TIMEOUT_MS = 120_000;
const BATCH_CONNECTIONS = 4;
/** As many as look-ups are under way at once. */
const AUTH_CONNECTIONS = 2;
const LOCK_WAIT_MS = 2_000;
const STATEMENT_TIMEOUT_MS = 10_000;
/** How long a keyed request waits, in turns of the lane's lock timeout, for another one with its key to commit. */
const KEY_WAIT_MS = 2_000;
const LOCK_NOT_AVAILABLE = '55P03';

/** Opens the pools of the intake. `noteUse` hears of every good key, and must not throw. */
export function createIntake(
  config: Config,
  onIdleError: (error: Error) => void,
  noteUse: (key: KeyHolder) => void,
): Intake {
  const open = (
    lane: string,
    options: { max: number; statementTimeoutMs?: number; lockTimeoutMs?: number },
  ) =>
    createPool({
      url: config.databaseUrl,
      role: 'waybill_intake',
      applicationName: `waybill-api-${lane}`,
      statementTimeoutMs: STATEMENT_TIMEOUT_MS,
      lockTimeoutMs: KEY_LOCK_WAIT_MS,
      genericPlans: true,
      onIdleError,
      ...options,
    });
  const authPool = open('auth', { max: AUTH_CONNECTIONS });
  const acceptPool = open('accept', { max: 10, lockTimeoutMs: LOCK_WAIT_MS });
  const keyedPool = open('keyed', { max: KEYED_CONNECTIONS });
  const batchPool = open('batch', { max: BATCH_CONNECTIONS, statementTimeoutMs: BATCH_TIMEOUT_MS });
  const authenticate = createAuthenticate(authPool, config.keyEnv);
  const options = { maxAgeMs: config.maxAgeMs };
  const turns = new Turns();
  return {
    async authenticate(request) {
      const holder = await authenticate(request);
      noteUse(holder);
      return holder;
    },
    accept: createGroupAccept((inputs) => acceptEvents(acceptPool, inputs, options)),
    async acceptKeyed(input) {
      // Of the requests under one key only one at a time in this process: a key that hangs must not take all connections.
      const turn = await turns.take(`${input.tenantId} ${input.idempotency!.key}`, KEY_WAIT_MS, () =>
        untilKeysAreFree(() => acceptEvents(keyedPool, [input], options)),
      );
      if (turn === null) throw keyInProgress();
      return turn.result[0]!;
    },
    acceptBatch: (inputs, settle) =>
      untilKeysAreFree(() =>
        inTransaction(batchPool, async (client) => (await acceptEvents(client, inputs, options)).map(settle)),
      ),
    async close() {
      await Promise.all([authPool.end(), acceptPool.end(), keyedPool.end(), batchPool.end()]);
    },
  };
}

function keyInProgress(cause?: unknown): AppError {
  return new AppError('idempotency_key_in_progress', undefined, { retryAfterSeconds: 1, cause });
}

/** Between its turns a waiting request holds no connection: one stuck key cannot keep the lane from the others. */
async function untilKeysAreFree<Result>(work: () => Promise<Result>): Promise<Result> {
  const deadline = performance.now() + KEY_WAIT_MS;
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (sqlState(error) !== LOCK_NOT_AVAILABLE) throw error;
      if (performance.now() >= deadline) throw keyInProgress(error);
    }
  }
}

async function inTransaction<Result>(
  pool: pg.Pool,
  work: (client: pg.PoolClient) => Promise<Result>,
): Promise<Result> {
  const client = await pool.connect();
  let broken: Error | undefined;
  try {
    await client.query('begin');
    const result = await work(client);
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
