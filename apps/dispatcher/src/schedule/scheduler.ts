import { randomUUID } from 'node:crypto';
import {
  CLAIM_BYTES_MAX,
  claimDeliveries,
  type Claim,
  type CircuitChange,
  type ClaimedDelivery,
  type EndpointRef,
  type ReplicaState,
} from '#outbox';
import type { Logger, Queryable } from '#runtime';
import { databaseClock, type DatabaseClock } from './database-clock.js';
import { InFlight, type SlotSettings } from './in-flight.js';
import { Lookout } from './lookout.js';
import { ReadyEndpoints } from './ready-endpoints.js';
import { WakeUp } from './wake-up.js';

export interface SchedulerSettings extends SlotSettings {
  readonly leaseMs: number;
  readonly pollMs: number;
  /** Failures in a row that open a circuit; 0 for none. */
  readonly circuitFailures: number;
}

export interface SchedulerParts {
  readonly db: Queryable;
  readonly logger: Logger;
  readonly settings: SchedulerSettings;
  /** Sends one delivery and settles it; the slot is free again when it resolves. Must not reject. */
  readonly dispatch: (delivery: ClaimedDelivery, clock: DatabaseClock) => Promise<void>;
  readonly giveBack: (claimed: readonly ClaimedDelivery[], delayMs: number) => Promise<void>;
  /** Outcomes that wait to be recorded: claims pause while there are too many. */
  readonly unrecorded: () => number;
}

/** Late commits inside this time are found by discovery itself; later ones by the sweep. */
export const SLACK_MS = 1_000;
/** With less than half of the slots free a claim waits this long for more: at batch 1 a claim costs 20 times as much a row. */
const CLAIM_GAP_MS = 20;
/** What one claim takes at most: more made no claim cheaper a row, and its deliveries wait for each other. */
const CLAIM_MAX = 256;
/** A claim that took longer than this, in vain or not, is asked for half as much next time; one of a quarter of it, for twice. */
const CLAIM_SLOW_MS = 1_000;
const UNRECORDED_MAX = 2_048;
/** Nobody rings when outcomes are through, so whoever waits for that looks again. */
const UNRECORDED_LOOK_MS = 50;
/** How often attempts are looked at that may have become slow. */
const AGE_MS = 100;
const BACKOFF_MAX_MS = 2_000;

/**
 * Decides what is claimed next: the only part of the dispatcher that remembers anything.
 *
 *   hints, lookout (discovery and sweep) → ready endpoints → choose in fair order → claim → dispatch into a lane
 *
 * Polling is always on: a hint only shortens the wait, and a lost one costs at most `pollMs`. When the database
 * fails, the loop reports it, backs off up to 2 s, and looks at everything anew.
 */
export class Scheduler {
  readonly #parts: SchedulerParts;
  readonly #ready = new ReadyEndpoints();
  readonly #wakeUp = new WakeUp();
  readonly #inFlight: InFlight;
  readonly #lookout: Lookout;
  #stopping = false;
  #running: Promise<void> | null = null;
  #failures = 0;
  #lastClaimAt = -Infinity;
  #lastTurnOk = true;
  /** Payloads travel with a claim: what is too much for the way to the database must not be asked for again and again. */
  #claimMax = CLAIM_MAX;

  constructor(parts: SchedulerParts) {
    this.#parts = parts;
    this.#inFlight = new InFlight(parts.settings);
    this.#lookout = new Lookout(parts.db, parts.settings.pollMs, SLACK_MS, (endpoint, dueAtMs) =>
      this.#ready.see(endpoint, dueAtMs, performance.now()),
    );
  }

  get inFlight(): number {
    return this.#inFlight.count;
  }

  /** Attempts that have taken longer than a second, and all of endpoints that are known to. */
  get inSlowLane(): number {
    return this.#inFlight.slowCount;
  }

  /** Seconds that the last whole walk over all owed endpoints took: how late a commit nobody hinted at can be found. */
  get sweepRoundSeconds(): number {
    return this.#lookout.sweepRoundSeconds;
  }

  /** False while the database refuses the loop's statements. */
  get healthy(): boolean {
    return this.#lastTurnOk;
  }

  /** What it says of itself with a heartbeat. */
  get state(): ReplicaState {
    const { tenants, endpoints, slotsFull } = this.#inFlight.atCap(performance.now());
    return { tenantsAtCap: tenants, endpointsAtCap: endpoints, slotsFull };
  }

  start(): void {
    this.#running ??= this.#run();
  }

  /** How many dispatchers live: they share the endpoints' caps. */
  share(replicas: number): void {
    this.#inFlight.replicas = replicas;
  }

  /** A hint: these endpoints have due work; none named means "look now". */
  hint(endpoints: readonly EndpointRef[]): void {
    const now = performance.now();
    for (const endpoint of endpoints) this.#ready.see(endpoint, null, now);
    if (endpoints.length === 0) this.#lookout.lookNow();
    this.#wakeUp.ring();
  }

  /** The receiver asked to be left alone for so long: nothing more is claimed for it, whatever is recorded by now. */
  hold(endpoint: EndpointRef, holdMs: number): void {
    this.#ready.hold(endpoint, holdMs, performance.now());
  }

  /** Circuits that opened or closed: what waits behind them is asked for anew. */
  circuitsChanged(changes: readonly CircuitChange[]): void {
    for (const { endpointId } of changes) this.#ready.askAnew(endpointId);
    this.#wakeUp.ring();
  }

  /** Stops claiming; resolves when no claim is under way any more. What is in flight goes on. */
  async stop(): Promise<void> {
    this.#stopping = true;
    this.#wakeUp.ring();
    await this.#running;
  }

  async #run(): Promise<void> {
    while (!this.#stopping) {
      try {
        const sleepMs = await this.#turn();
        this.#failures = 0;
        this.#lastTurnOk = true;
        if (sleepMs > 0) await this.#wakeUp.sleep(sleepMs);
      } catch (error) {
        this.#lastTurnOk = false;
        this.#parts.logger.warn({ event: 'schedule.failed', failures: this.#failures, err: error });
        this.#lookout.startOver();
        await this.#wakeUp.sleep(Math.min(BACKOFF_MAX_MS, 50 * 2 ** this.#failures));
        this.#failures += 1;
      }
    }
  }

  /** One turn: look for work if it is time, claim if there is room; says how long there is nothing to do. */
  async #turn(): Promise<number> {
    await this.#lookout.look(performance.now());
    const now = performance.now();
    this.#ready.wake(now);
    this.#inFlight.age(now);
    const claimInMs = this.#claimInMs(now);
    if (claimInMs === 0 && (await this.#claim())) return 0;
    const untilMs = Math.min(this.#lookout.nextAtMs, this.#ready.nextAtMs) - performance.now();
    return Math.max(
      1,
      Math.min(untilMs, claimInMs || Infinity, this.#inFlight.count > 0 ? AGE_MS : Infinity),
    );
  }

  /** Milliseconds until a claim makes sense: 0 for now, infinite while there is no room or no known work. */
  #claimInMs(now: number): number {
    if (this.#ready.size === 0) return Infinity;
    if (this.#parts.unrecorded() > UNRECORDED_MAX) return UNRECORDED_LOOK_MS;
    const { fast, slow } = this.#inFlight.free;
    if (fast === 0 && slow === 0) return Infinity;
    if (fast >= this.#parts.settings.concurrency / 2) return 0;
    return Math.max(0, this.#lastClaimAt + CLAIM_GAP_MS - now);
  }

  async #claim(): Promise<boolean> {
    const { db, settings } = this.#parts;
    const { fast, slow } = this.#inFlight.free;
    const askedAtMs = performance.now();
    const quotas = this.#ready.choose({
      fast: Math.min(fast, this.#claimMax),
      slow: Math.min(slow, this.#claimMax),
      laneOf: (endpointId) => this.#inFlight.laneOf(endpointId),
      freeOfEndpoint: (endpointId) => this.#inFlight.freeOfEndpoint(endpointId, askedAtMs),
      freeOfTenant: (tenantId, lane, left) => this.#inFlight.freeOfTenant(tenantId, lane, left),
    });
    // A choice in vain counts too: with a crowded lane every attempt that ends would make another one.
    this.#lastClaimAt = askedAtMs;
    if (quotas.length === 0) return false;
    const claim = await claimDeliveries(db, quotas, {
      claimToken: randomUUID(),
      leaseMs: settings.leaseMs,
      replicas: this.#inFlight.replicas,
      circuitFailures: settings.circuitFailures,
    }).finally(() => this.#pace(performance.now() - askedAtMs));
    this.#forgetGone(quotas, claim);
    this.#settle(claim);
    if (this.#stopping) {
      await this.#parts.giveBack(claim.deliveries, 0);
      return false;
    }
    const clock = databaseClock(claim.databaseNowMs, askedAtMs, () => performance.now());
    for (const delivery of claim.deliveries) this.#dispatch(delivery, clock);
    return true;
  }

  #pace(tookMs: number): void {
    if (tookMs > CLAIM_SLOW_MS) this.#claimMax = Math.max(1, this.#claimMax >> 1);
    else if (tookMs < CLAIM_SLOW_MS / 4) this.#claimMax = Math.min(CLAIM_MAX, this.#claimMax * 2);
  }

  /** A claim says how each chosen endpoint stands, unless it is there no more: its tenant was deleted. */
  #forgetGone(quotas: readonly EndpointRef[], { endpoints }: Claim): void {
    const known = new Set(endpoints.map(({ endpointId }) => endpointId));
    for (const quota of quotas) if (!known.has(quota.endpointId)) this.#ready.forget(quota);
  }

  #settle({ endpoints, deliveries }: Claim): void {
    const claimed = new Map(endpoints.map(({ endpointId }) => [endpointId, { count: 0, lastDueAtMs: 0 }]));
    let bytes = 0;
    for (const { endpointId, dueAtMs, payload } of deliveries) {
      const of = claimed.get(endpointId)!;
      of.count += 1;
      of.lastDueAtMs = Math.max(of.lastDueAtMs, dueAtMs);
      bytes += payload.length;
    }
    // A claim that was cut short by its bytes says nothing about what is left behind: all stay ready.
    if (bytes >= CLAIM_BYTES_MAX) return;
    const at = { nowMs: performance.now(), slackMs: SLACK_MS };
    for (const endpoint of endpoints) this.#ready.settle(endpoint, claimed.get(endpoint.endpointId)!, at);
  }

  #dispatch(delivery: ClaimedDelivery, clock: DatabaseClock): void {
    const slot = this.#inFlight.start(delivery, performance.now());
    void this.#parts.dispatch(delivery, clock).then(() => {
      this.#inFlight.end(slot, performance.now());
      if (this.#ready.size > 0) this.#wakeUp.ring();
    });
  }
}
