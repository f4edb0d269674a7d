import { randomUUID } from 'node:crypto';
import {
  cancelDeleted,
  CLAIM_BYTES_MAX,
  claimDeliveries,
  discoverEndpoints,
  NIL_UUID,
  sweepEndpoints,
  type ClaimedDelivery,
  type ClaimQuota,
  type DiscoveryPlace,
  type EndpointRef,
} from '#outbox';
import type { Logger, Queryable } from '#runtime';
import { Counts } from './counts.js';
import { databaseClock, type DatabaseClock } from './database-clock.js';
import { ReadyEndpoints } from './ready-endpoints.js';
import { WakeUp } from './wake-up.js';

export interface SchedulerSettings {
  readonly concurrency: number;
  readonly endpointConcurrency: number;
  readonly tenantConcurrency: number;
  readonly leaseMs: number;
  readonly pollMs: number;
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

/** Rows one discovery reads, and endpoints one sweep walks. */
const DISCOVERY_ROWS = 1_000;
const SWEEP_ENDPOINTS = 1_000;
const CANCEL_ROWS = 1_000;
/** Late commits inside this time are found by discovery itself; later ones by the sweep. */
const SLACK_MS = 1_000;
/** Claims for a few slots wait this long for more to come free: at batch 1 a claim costs 20 times as much a row. */
const CLAIM_GAP_MS = 5;
/** A claim that took longer than this, in vain or not, is asked for half as much next time; one of a quarter of it, for twice. */
const CLAIM_SLOW_MS = 1_000;
const UNRECORDED_MAX = 2_048;
/** Nobody rings when outcomes are through, so whoever waits for that looks again. */
const UNRECORDED_LOOK_MS = 50;
const BACKOFF_MAX_MS = 2_000;

/**
 * Decides what is claimed next: the only part of the dispatcher that remembers anything.
 *
 *   hints, discovery (what fell due since the last look), sweep (a slow walk over everything owed)
 *     → ready endpoints → choose in fair order → claim → dispatch
 *
 * Polling is always on: a hint only shortens the wait, and a lost one costs at most `pollMs`. When the database
 * fails, the loop reports it, backs off up to 2 s, and starts again from the beginning of the due order.
 */
export class Scheduler {
  readonly #parts: SchedulerParts;
  readonly #ready = new ReadyEndpoints();
  readonly #wakeUp = new WakeUp();
  readonly #inFlightOf = new Counts();
  readonly #inFlightOfTenant = new Counts();
  #inFlight = 0;
  #stopping = false;
  #running: Promise<void> | null = null;
  #failures = 0;
  #lastClaimAt = -Infinity;
  #lastLookAt = -Infinity;
  #lookAt = 0;
  #place: DiscoveryPlace | null = null;
  #sweptTo: EndpointRef = { tenantId: NIL_UUID, endpointId: NIL_UUID };
  #lastTurnOk = true;
  /** Payloads travel with a claim: what is too much for the way to the database must not be asked for again and again. */
  #claimMax: number;

  constructor(parts: SchedulerParts) {
    this.#parts = parts;
    this.#claimMax = parts.settings.concurrency;
  }

  get inFlight(): number {
    return this.#inFlight;
  }

  /** False while the database refuses the loop's statements. */
  get healthy(): boolean {
    return this.#lastTurnOk;
  }

  start(): void {
    this.#running ??= this.#run();
  }

  /** A hint: these endpoints have due work; none named means "look now". */
  hint(endpoints: readonly EndpointRef[]): void {
    for (const endpoint of endpoints) this.#ready.see(endpoint);
    if (endpoints.length === 0) this.#lookAt = 0;
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
        this.#startOver();
        await this.#wakeUp.sleep(Math.min(BACKOFF_MAX_MS, 50 * 2 ** this.#failures));
        this.#failures += 1;
      }
    }
  }

  /** One turn: look for work if it is time, claim if there is room; says how long there is nothing to do. */
  async #turn(): Promise<number> {
    const now = performance.now();
    if (now >= this.#lookAt) await this.#look(now);
    const claimInMs = this.#claimInMs();
    if (claimInMs === 0) return (await this.#claim()) ? 0 : this.#untilLook();
    return Math.min(claimInMs, this.#untilLook());
  }

  #untilLook(): number {
    return Math.max(1, this.#lookAt - performance.now());
  }

  /** Milliseconds until a claim makes sense: 0 for now, infinite while there is no room or no known work. */
  #claimInMs(): number {
    if (this.#parts.unrecorded() > UNRECORDED_MAX) return UNRECORDED_LOOK_MS;
    const free = this.#free();
    if (free <= 0 || this.#ready.size === 0) return Infinity;
    if (free >= this.#parts.settings.concurrency / 2) return 0;
    return Math.max(0, this.#lastClaimAt + CLAIM_GAP_MS - performance.now());
  }

  #free(): number {
    return this.#parts.unrecorded() > UNRECORDED_MAX ? 0 : this.#parts.settings.concurrency - this.#inFlight;
  }

  async #look(now: number): Promise<void> {
    const { db, settings } = this.#parts;
    // Set before the look: a hint that comes meanwhile asks for another one.
    this.#lookAt = now + settings.pollMs;
    const start = this.#place === null ? { lookBackMs: this.#lookBackMs(now) } : { after: this.#place };
    const found = await discoverEndpoints(db, start, DISCOVERY_ROWS);
    for (const endpoint of found.endpoints) this.#ready.see(endpoint);
    this.#place = found.next;
    if (found.next !== null) {
      this.#lookAt = 0;
      return;
    }
    this.#lastLookAt = now;
    await this.#sweep();
  }

  /** From the very first row at start; then from the last look on, with slack for commits that came late. */
  #lookBackMs(now: number): number {
    const YEARS_100 = 100 * 365 * 86_400_000;
    return Math.min(YEARS_100, now - this.#lastLookAt + SLACK_MS);
  }

  async #sweep(): Promise<void> {
    const swept = await sweepEndpoints(this.#parts.db, this.#sweptTo, SWEEP_ENDPOINTS);
    for (const endpoint of swept) {
      if (endpoint.deleted) await cancelDeleted(this.#parts.db, endpoint, CANCEL_ROWS);
      else if (endpoint.due) this.#ready.see(endpoint);
    }
    this.#sweptTo =
      swept.length === SWEEP_ENDPOINTS ? swept.at(-1)! : { tenantId: NIL_UUID, endpointId: NIL_UUID };
  }

  async #claim(): Promise<boolean> {
    const { db, settings } = this.#parts;
    const quotas = this.#ready.choose({
      slots: Math.min(this.#free(), this.#claimMax),
      endpointLimit: settings.endpointConcurrency,
      tenantLimit: settings.tenantConcurrency,
      inFlight: (endpointId) => this.#inFlightOf.of(endpointId),
      inFlightOfTenant: (tenantId) => this.#inFlightOfTenant.of(tenantId),
    });
    if (quotas.length === 0) return false;
    const askedAtMs = performance.now();
    this.#lastClaimAt = askedAtMs;
    const claim = await claimDeliveries(db, quotas, {
      claimToken: randomUUID(),
      leaseMs: settings.leaseMs,
    }).finally(() => this.#pace(performance.now() - askedAtMs));
    this.#settle(quotas, claim.deliveries);
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
    else if (tookMs < CLAIM_SLOW_MS / 4)
      this.#claimMax = Math.min(this.#parts.settings.concurrency, this.#claimMax * 2);
  }

  #settle(quotas: readonly ClaimQuota[], deliveries: readonly ClaimedDelivery[]): void {
    const claimed = new Map(quotas.map((quota) => [quota.endpointId, { count: 0, lastDueAtMs: 0 }]));
    let bytes = 0;
    for (const { endpointId, dueAtMs, payload } of deliveries) {
      const of = claimed.get(endpointId)!;
      of.count += 1;
      of.lastDueAtMs = Math.max(of.lastDueAtMs, dueAtMs);
      bytes += payload.length;
    }
    // A claim that was cut short by its bytes says nothing about what is left behind: all stay ready.
    if (bytes >= CLAIM_BYTES_MAX) return;
    for (const quota of quotas) this.#ready.settle(quota, claimed.get(quota.endpointId)!, SLACK_MS);
  }

  #dispatch(delivery: ClaimedDelivery, clock: DatabaseClock): void {
    const { tenantId, endpointId } = delivery;
    this.#inFlight += 1;
    this.#inFlightOf.add(endpointId, 1);
    this.#inFlightOfTenant.add(tenantId, 1);
    void this.#parts.dispatch(delivery, clock).then(() => {
      this.#inFlight -= 1;
      this.#inFlightOf.add(endpointId, -1);
      this.#inFlightOfTenant.add(tenantId, -1);
      if (this.#ready.size > 0) this.#wakeUp.ring();
    });
  }

  #startOver(): void {
    this.#place = null;
    this.#lastLookAt = -Infinity;
    this.#lookAt = 0;
  }
}
