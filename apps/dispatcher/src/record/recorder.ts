import { setTimeout as delay } from 'node:timers/promises';
import { giveBackDeliveries, recordAttempts, type ClaimedDelivery, type SettledAttempt } from '#outbox';
import { isDatabaseUnavailable, sqlState, type Logger, type Queryable } from '#runtime';

const BATCH_MAX = 256;
const LINGER_MS = 10;
const FLUSHES_MAX = 2;
const BACKOFF_MAX_MS = 2_000;
/** SQLSTATE classes that blame the data: cardinality, data exception, integrity, program limit. All others pass by. */
const REFUSED_DATA = /^(21|22|23|54)/;

/** What the recorder tells those who watch it. */
export interface RecorderEvents {
  recorded(settled: SettledAttempt, moved: boolean): void;
}

/**
 * Gathers outcomes and writes them in batches: at 256, or 10 ms after the first, at most two statements under way.
 *
 *   settled --flush--> recorded
 *     flush fails, data refused   → halves, until the bad row stands alone and is recorded without its odd parts
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
  #flushes = 0;
  #unrecorded = 0;
  #idle: (() => void)[] = [];

  constructor(db: Queryable, logger: Logger, events: RecorderEvents) {
    this.#db = db;
    this.#logger = logger;
    this.#events = events;
  }

  /** Outcomes that are not yet in the database. */
  get unrecorded(): number {
    return this.#unrecorded;
  }

  add(settled: SettledAttempt): void {
    this.#waiting.push(settled);
    this.#unrecorded += 1;
    if (this.#waiting.length >= BATCH_MAX) this.#flush();
    else this.#timer ??= setTimeout(() => this.#flush(), LINGER_MS);
  }

  /** Writes these at once, and resolves when they are in the database. */
  async record(batch: readonly SettledAttempt[]): Promise<void> {
    this.#unrecorded += batch.length;
    await this.#write(batch);
    this.#recorded(batch.length);
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
    this.#flush();
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

  #flush(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    while (this.#flushes < FLUSHES_MAX && this.#waiting.length > 0) {
      const batch = this.#waiting.splice(0, BATCH_MAX);
      this.#flushes += 1;
      void this.#write(batch).then(() => {
        this.#flushes -= 1;
        if (this.#waiting.length > 0) this.#flush();
        this.#recorded(batch.length);
      });
    }
  }

  #recorded(count: number): void {
    this.#unrecorded -= count;
    if (this.#unrecorded === 0) for (const done of this.#idle.splice(0)) done();
  }

  async #write(batch: readonly SettledAttempt[]): Promise<void> {
    for (let failures = 0; ; failures += 1) {
      try {
        const moved = await recordAttempts(this.#db, batch);
        for (const settled of batch) this.#events.recorded(settled, moved.has(settled.deliveryId));
        return;
      } catch (error) {
        const state = sqlState(error);
        const again = isDatabaseUnavailable(error) || (state !== null && !REFUSED_DATA.test(state));
        this.#logger.warn({ event: 'record.failed', count: batch.length, again, err: error });
        if (!again) return this.#split(batch, error);
        await delay(Math.min(BACKOFF_MAX_MS, 50 * 2 ** failures));
      }
    }
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
