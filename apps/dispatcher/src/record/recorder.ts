import { setTimeout as delay } from 'node:timers/promises';
import {
  ensureCircuits,
  giveBackDeliveries,
  recordAttempts,
  type CircuitChange,
  type ClaimedDelivery,
  type SettledAttempt,
} from '#outbox';
import { isDatabaseUnavailable, sqlState, type Logger, type Queryable } from '#runtime';

const BATCH_MAX = 256;
/** What a statement costs beside its rows is shared by all of them: 140 a batch instead of 250 cost a tenth more a row. */
const LINGER_MS = 50;
const FLUSHES_MAX = 2;
const BACKOFF_MAX_MS = 2_000;
/** SQLSTATE classes that blame the data: cardinality, data exception, integrity, program limit. All others pass by. */
const REFUSED_DATA = /^(21|22|23|54)/;
const STATEMENT_TIMEOUT = '57014';
const LOCK_NOT_AVAILABLE = '55P03';

/** What the recorder tells those who watch it. */
export interface RecorderEvents {
  /** Called once for each batch that is in the database, with the ids of the deliveries that it moved. */
  recorded(batch: readonly SettledAttempt[], moved: ReadonlySet<string>): void;
  circuitsChanged(changes: readonly CircuitChange[]): void;
}

/** Endpoints of which this process knows that their failures have a row to be counted in. */
const KNOWN_CIRCUITS_MAX = 10_000;

/**
 * Gathers outcomes and writes them in batches: at 256, or 50 ms after the first, at most two statements under way.
 *
 *   settled --flush--> recorded
 *     flush fails, data refused   → halves, until the bad row stands alone and is recorded without its odd parts
 *     flush takes too long        → halves as well
 *     a row stays locked          → the same without what it teaches of endpoints, then halves
 *     flush fails otherwise       → the same batch again, with backoff; repeating it is harmless
 *
 * Nothing is dropped while the process lives; if it dies, leases lapse and reap tells the story.
 */
export class Recorder {
  readonly #db: Queryable;
  readonly #logger: Logger;
  readonly #events: RecorderEvents;
  readonly #waiting: SettledAttempt[] = [];
  #timer: NodeJS.Timeout | null = null;
  /** The first that waits has waited long enough. */
  #isDue = false;
  #flushes = 0;
  #unrecorded = 0;
  readonly #held = new Set<string>();
  #idle: (() => void)[] = [];
  readonly #knownCircuits = new Set<string>();

  constructor(db: Queryable, logger: Logger, events: RecorderEvents) {
    this.#db = db;
    this.#logger = logger;
    this.#events = events;
  }

  /**
   * Whether an outcome of this delivery waits here. Reap must leave its claim alone, however long the database is away
   * or a row is locked: it would have the delivery sent again.
   */
  holds(deliveryId: string): boolean {
    return this.#held.has(deliveryId);
  }

  /** Outcomes that are not yet in the database. */
  get unrecorded(): number {
    return this.#unrecorded;
  }

  add(settled: SettledAttempt): void {
    this.#waiting.push(settled);
    this.#held.add(settled.deliveryId);
    this.#unrecorded += 1;
    if (this.#waiting.length >= BATCH_MAX) this.#flush();
    else this.#linger();
  }

  /** Writes these at once, and resolves when they are in the database. */
  async record(batch: readonly SettledAttempt[]): Promise<void> {
    this.#unrecorded += batch.length;
    await this.#write(batch);
    this.#recorded(batch);
  }

  /** Frees claims of which nothing was sent; if the database is away their leases run out instead. */
  async giveBack(claimed: readonly ClaimedDelivery[], delayMs: number): Promise<void> {
    try {
      await giveBackDeliveries(this.#db, claimed, { delayMs });
    } catch (error) {
      this.#logger.warn({ event: 'claim.give_back_failed', count: claimed.length, err: error });
    }
  }

  /**
   * Writes what is waiting now and resolves when all of it is in the database, or after `timeoutMs` if the database is
   * away: the leases of the rest run out, and reap tells their story.
   */
  async drain(timeoutMs: number): Promise<void> {
    this.#flushAll();
    if (this.#unrecorded === 0) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, timeoutMs);
      this.#idle.push(() => {
        clearTimeout(timer);
        resolve();
      });
    });
    if (this.#unrecorded > 0) this.#logger.error({ event: 'record.abandoned', count: this.#unrecorded });
  }

  /** Writes whatever waits, as soon as there is a statement free for it. */
  #flushAll(): void {
    this.#isDue = this.#waiting.length > 0;
    this.#flush();
  }

  #linger(): void {
    if (!this.#isDue) this.#timer ??= setTimeout(() => this.#flushAll(), LINGER_MS);
  }

  #stopLingering(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
  }

  #flush(): void {
    while (this.#flushes < FLUSHES_MAX && (this.#isDue || this.#waiting.length >= BATCH_MAX)) {
      const batch = this.#waiting.splice(0, BATCH_MAX);
      this.#stopLingering();
      if (this.#waiting.length === 0) this.#isDue = false;
      else this.#linger();
      this.#flushes += 1;
      void this.#write(batch).then(() => {
        this.#flushes -= 1;
        this.#flush();
        this.#recorded(batch);
      });
    }
  }

  #recorded(batch: readonly SettledAttempt[]): void {
    this.#unrecorded -= batch.length;
    for (const { deliveryId } of batch) this.#held.delete(deliveryId);
    if (this.#unrecorded === 0) for (const done of this.#idle.splice(0)) done();
  }

  async #write(batch: readonly SettledAttempt[]): Promise<void> {
    for (let failures = 0; ; failures += 1) {
      try {
        await this.#makeCircuits(batch);
        const { moved, circuits } = await recordAttempts(this.#db, batch);
        this.#tell(batch, moved, circuits);
        return;
      } catch (error) {
        const state = sqlState(error);
        const locked = state === LOCK_NOT_AVAILABLE;
        const tooSlow = (state === STATEMENT_TIMEOUT || locked) && batch.length > 1;
        const refused = state === null ? isOwnFault(error) : REFUSED_DATA.test(state);
        const again = isDatabaseUnavailable(error) || (!tooSlow && !refused);
        this.#logger.warn({ event: 'record.failed', count: batch.length, again, err: error });
        // Outcomes are worth more than what they teach, and most locks are of the row that would learn it.
        if (locked && batch.some(({ lesson }) => lesson !== null))
          return this.#write(batch.map(withoutLesson));
        if (!again) return this.#split(batch, error);
        await delay(Math.min(BACKOFF_MAX_MS, 50 * 2 ** failures));
      }
    }
  }

  /** It is in the database: whatever becomes of those who hear of it, it must not be written again. */
  #tell(
    batch: readonly SettledAttempt[],
    moved: ReadonlySet<string>,
    circuits: readonly CircuitChange[],
  ): void {
    try {
      this.#events.recorded(batch, moved);
      if (circuits.length > 0) this.#events.circuitsChanged(circuits);
    } catch (error) {
      this.#logger.error({ event: 'record.unheard', count: batch.length, err: error });
    }
  }

  async #makeCircuits(batch: readonly SettledAttempt[]): Promise<void> {
    const missing = new Map(
      batch
        .filter(
          ({ endpointId, lesson }) => lesson?.succeeded === false && !this.#knownCircuits.has(endpointId),
        )
        .map((settled) => [settled.endpointId, settled]),
    );
    if (missing.size === 0) return;
    await ensureCircuits(this.#db, [...missing.values()]);
    if (this.#knownCircuits.size > KNOWN_CIRCUITS_MAX) this.#knownCircuits.clear();
    for (const endpointId of missing.keys()) this.#knownCircuits.add(endpointId);
  }

  async #split(batch: readonly SettledAttempt[], error: unknown): Promise<void> {
    if (batch.length > 1) {
      const half = batch.length >> 1;
      await this.#write(batch.slice(0, half));
      await this.#write(batch.slice(half));
      return;
    }
    const settled = batch[0]!;
    if (settled.attempt.errorKind === UNRECORDABLE) {
      this.#logger.error({ event: 'record.refused', delivery_id: settled.deliveryId, err: error });
      return;
    }
    await this.#write([withoutOddParts(settled)]);
  }
}

const UNRECORDABLE = 'unrecordable';

function withoutLesson(settled: SettledAttempt): SettledAttempt {
  return { ...settled, lesson: null };
}

/** Errors of the language blame what we made of the data; all others without a code are the connection's. */
function isOwnFault(error: unknown): boolean {
  return error instanceof TypeError || error instanceof RangeError || error instanceof SyntaxError;
}

/** The same attempt and outcome, without the parts that came from the receiver. */
function withoutOddParts(settled: SettledAttempt): SettledAttempt {
  return {
    ...settled,
    attempt: {
      ...settled.attempt,
      errorKind: UNRECORDABLE,
      error: 'The answer of the receiver could not be stored.',
      responseBody: null,
    },
  };
}
