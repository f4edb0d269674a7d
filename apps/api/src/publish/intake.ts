import type { IncomingMessage } from 'node:http';
import { acceptEvents, type AcceptResult, type EventInput } from '#outbox';
import {
  AppError,
  assertSchemaRevision,
  createPool,
  sqlState,
  withTransaction,
  type Config,
  type Database,
  type PoolOptions,
} from '#runtime';
import type { KeyHolder } from '#tenants';
import { createAuthenticate, type Authenticate } from '../auth/authenticate.js';
import { ACCEPT_LIMITS, createGroupAccept, type Accept } from './group-accept.js';
import { Turns } from './turns.js';

/**
 * A key that another transaction holds makes its requests wait in turns of this long, on four connections of their own:
 * measured, one held key kept 127 strangers waiting for 3.5 s when all shared one lane.
 */
const KEY_LOCK_WAIT_MS = 200;
const KEYED_CONNECTIONS = 4;
/** A batch is one statement however far it fans out: 1,000 events to 300 endpoints each took over 10 s. */
const BATCH_TIMEOUT_MS = 120_000;
const BATCH_CONNECTIONS = 4;
/**
 * Filters are the tenant's own: with 50 comparisons, a payload of 100,000 items and many endpoints a statement takes as
 * long as it is let. So tenants that have any share none with others, and wait in a pool of their own.
 */
const FILTERED_CONNECTIONS = 6;
const FILTERED_TIMEOUT_MS = 5_000;
const FILTERED_TENANTS_KEPT = 10_000;
/** As many as look-ups are under way at once. */
const AUTH_CONNECTIONS = 2;
const LOCK_WAIT_MS = 2_000;
const STATEMENT_TIMEOUT_MS = 10_000;
/** How long a keyed request waits, in turns of the lane's lock timeout, for another one with its key to commit. */
const KEY_WAIT_MS = 2_000;
const LOCK_NOT_AVAILABLE = '55P03';
/** One statement of a tenant at a time, so that it cannot take the lane from the others. */
const FILTERED_LIMITS = { ...ACCEPT_LIMITS, flightsMax: 1 };

/**
 * The only way to the role that works for many tenants at once: whose key a request brings, and storing its events. No
 * handler gets at its pools.
 */
export class Intake {
  /** Stores an event without an idempotency key, together with others that come at the same time. */
  readonly accept: Accept;
  readonly #authenticate: Authenticate;
  readonly #noteUse: (key: KeyHolder) => void;
  readonly #authPool: Database;
  readonly #acceptPool: Database;
  readonly #keyedPool: Database;
  readonly #batchPool: Database;
  readonly #filteredPool: Database;
  readonly #filtered = new Map<string, Accept>();
  readonly #options: { readonly maxAgeMs: number };
  readonly #turns = new Turns();

  /** `noteUse` hears of every good key, and must not throw. */
  constructor(config: Config, onIdleError: (error: Error) => void, noteUse: (key: KeyHolder) => void) {
    const open = (lane: string, options: Partial<PoolOptions> & Pick<PoolOptions, 'max'>): Database =>
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
    this.#authPool = open('auth', { max: AUTH_CONNECTIONS });
    this.#acceptPool = open('accept', { max: 10, lockTimeoutMs: LOCK_WAIT_MS });
    this.#keyedPool = open('keyed', { max: KEYED_CONNECTIONS });
    this.#batchPool = open('batch', { max: BATCH_CONNECTIONS, statementTimeoutMs: BATCH_TIMEOUT_MS });
    this.#filteredPool = open('filtered', {
      max: FILTERED_CONNECTIONS,
      statementTimeoutMs: FILTERED_TIMEOUT_MS,
    });
    this.#options = { maxAgeMs: config.maxAgeMs };
    this.#authenticate = createAuthenticate(this.#authPool, config.keyEnv);
    this.#noteUse = noteUse;
    this.accept = createGroupAccept((inputs) => acceptEvents(this.#acceptPool, inputs, this.#options));
  }

  /** Whose key a request brings, looked up together with those of requests that come at the same time. */
  async authenticate(request: IncomingMessage): Promise<KeyHolder> {
    const holder = await this.#authenticate(request);
    this.#noteUse(holder);
    return holder;
  }

  /** Stores an event without an idempotency key of a tenant that has filters: together with its own events only. */
  acceptFiltered(input: EventInput): Promise<AcceptResult> {
    let accept = this.#filtered.get(input.tenantId);
    if (accept === undefined) {
      accept = createGroupAccept(
        (inputs) => acceptEvents(this.#filteredPool, inputs, this.#options),
        FILTERED_LIMITS,
      );
      if (this.#filtered.size >= FILTERED_TENANTS_KEPT) this.#filtered.clear();
      this.#filtered.set(input.tenantId, accept);
    }
    return accept(input);
  }

  /** Stores an event under its idempotency key: of the requests under one key only one at a time in this process. */
  async acceptKeyed(input: EventInput, hasFilters: boolean): Promise<AcceptResult> {
    const pool = hasFilters ? this.#filteredPool : this.#keyedPool;
    // A key that hangs must not take all connections.
    const turn = await this.#turns.take(`${input.tenantId} ${input.idempotency!.key}`, KEY_WAIT_MS, () =>
      untilKeysAreFree(() => acceptEvents(pool, [input], this.#options)),
    );
    if (turn === null) throw keyInProgress();
    return turn.result[0]!;
  }

  /** Stores a batch in one transaction, which `settle` ends by throwing; it sees each result with its place. */
  acceptBatch<Item>(
    inputs: readonly EventInput[],
    settle: (result: AcceptResult, place: number) => Item,
  ): Promise<readonly Item[]> {
    return untilKeysAreFree(() =>
      withTransaction(this.#batchPool, async (tx) =>
        (await acceptEvents(tx, inputs, this.#options)).map(settle),
      ),
    );
  }

  /** Throws what keeps it from working: no schema, another revision, a role that the login may not take. */
  assertReady(): Promise<void> {
    return assertSchemaRevision(this.#acceptPool, 'waybill_intake');
  }

  async close(): Promise<void> {
    const pools = [this.#authPool, this.#acceptPool, this.#keyedPool, this.#batchPool, this.#filteredPool];
    await Promise.all(pools.map((pool) => pool.end()));
  }
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
