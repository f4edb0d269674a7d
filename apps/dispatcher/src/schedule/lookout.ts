import {
  cancelDeleted,
  discoverEndpoints,
  NIL_UUID,
  sweepEndpoints,
  type DiscoveryPlace,
  type EndpointRef,
} from '#outbox';
import type { Queryable } from '#runtime';

/** Rows one discovery reads, and endpoints one step of the sweep walks. */
const DISCOVERY_ROWS = 1_000;
const SWEEP_ENDPOINTS = 1_000;
/** Deliveries that one step cancels, each statement counted as 50: a thousand deleted endpoints took 1.4 s of a turn. */
const CANCEL_ROWS = 1_000;
const CANCEL_COST_MIN = 50;
/** A step of the sweep is followed by a pause of so many times what it took: 5 % of one connection's time. */
const SWEEP_PAUSE = 20;

/**
 * Finds endpoints that have due work without being told. Discovery reads what fell due since its last look; the sweep
 * walks over every endpoint that is owed anything, slowly, and finds the rest: what was owed before this process began,
 * what was committed late, what a claim had to skip. After a start, or a failure of the database, the first round of the
 * sweep goes on without pauses. Deleted endpoints that it meets are relieved of what they are owed.
 */
export class Lookout {
  readonly #db: Queryable;
  readonly #pollMs: number;
  readonly #slackMs: number;
  readonly #see: (endpoint: EndpointRef, dueAtMs: number) => void;
  #lookAt = 0;
  #lastLookAt = performance.now();
  #place: DiscoveryPlace | null = null;
  #sweepAt = 0;
  #sweptTo: EndpointRef = { tenantId: NIL_UUID, endpointId: NIL_UUID };
  #roundStartedAt = performance.now();
  #hurried = true;
  #roundMs = 0;

  constructor(
    db: Queryable,
    pollMs: number,
    slackMs: number,
    see: (endpoint: EndpointRef, dueAtMs: number) => void,
  ) {
    this.#db = db;
    this.#pollMs = pollMs;
    this.#slackMs = slackMs;
    this.#see = see;
  }

  /** When there is something to look at next. */
  get nextAtMs(): number {
    return Math.min(this.#lookAt, this.#sweepAt);
  }

  get sweepRoundSeconds(): number {
    return this.#roundMs / 1000;
  }

  /** Somebody says that there is work and not where. */
  lookNow(): void {
    this.#lookAt = 0;
  }

  /** What was seen so far may be lost: look at everything anew. */
  startOver(): void {
    this.#place = null;
    this.#lookAt = 0;
    this.#beginRound(0);
    this.#hurried = true;
  }

  /** Takes the steps whose time has come: at most one of each kind. */
  async look(nowMs: number): Promise<void> {
    if (nowMs >= this.#lookAt) await this.#discover(nowMs);
    if (performance.now() >= this.#sweepAt) await this.#sweep(performance.now());
  }

  async #discover(nowMs: number): Promise<void> {
    // Set before the look: a hint that comes meanwhile asks for another one.
    this.#lookAt = nowMs + this.#pollMs;
    const lookBackMs = nowMs - this.#lastLookAt + this.#slackMs;
    const start = this.#place === null ? { lookBackMs } : { after: this.#place };
    const found = await discoverEndpoints(this.#db, start, DISCOVERY_ROWS);
    for (const endpoint of found.endpoints) this.#see(endpoint, endpoint.dueAtMs);
    this.#place = found.next;
    if (found.next === null) this.#lastLookAt = nowMs;
    else this.#lookAt = 0;
  }

  async #sweep(nowMs: number): Promise<void> {
    const swept = await sweepEndpoints(this.#db, this.#sweptTo, SWEEP_ENDPOINTS);
    let left = CANCEL_ROWS;
    for (const endpoint of swept) {
      if (endpoint.deleted) {
        const cancelled = await cancelDeleted(this.#db, endpoint, left);
        if (cancelled === left) return this.#goOn(performance.now() - nowMs);
        left -= Math.max(cancelled, CANCEL_COST_MIN);
      } else if (endpoint.dueAtMs !== null) {
        this.#see(endpoint, endpoint.dueAtMs);
      }
      this.#sweptTo = endpoint;
      if (left <= 0) return this.#goOn(performance.now() - nowMs);
    }
    const doneAt = performance.now();
    const pauseMs = this.#hurried ? 0 : (doneAt - nowMs) * SWEEP_PAUSE;
    if (swept.length === SWEEP_ENDPOINTS) {
      this.#sweepAt = doneAt + pauseMs;
      return;
    }
    this.#roundMs = doneAt - this.#roundStartedAt;
    this.#hurried = false;
    this.#beginRound(Math.max(this.#roundStartedAt + this.#pollMs, doneAt + pauseMs));
  }

  /** Breaks a step off, to let the scheduler have its turns: the next one begins where this one came to. */
  #goOn(tookMs: number): void {
    this.#sweepAt = performance.now() + tookMs;
  }

  #beginRound(atMs: number): void {
    this.#sweptTo = { tenantId: NIL_UUID, endpointId: NIL_UUID };
    this.#sweepAt = atMs;
    this.#roundStartedAt = Math.max(atMs, performance.now());
  }
}
