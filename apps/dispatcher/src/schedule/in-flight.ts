import type { ClaimedDelivery } from '#outbox';
import { Counts } from './counts.js';

export interface SlotSettings {
  /** Slots of the fast lane: an attempt holds one for at most a second. */
  readonly concurrency: number;
  /** Slots of the slow lane: attempts that take longer, and all of endpoints that are known to. 0 for no such lane. */
  readonly slowConcurrency: number;
  readonly endpointConcurrency: number;
  /** What one tenant may hold of the fast lane. */
  readonly tenantConcurrency: number;
}

/** One attempt's place in a lane. */
export interface Slot {
  readonly tenantId: string;
  readonly endpointId: string;
  readonly startedAtMs: number;
  lane: 'fast' | 'slow' | 'ended';
}

/** An attempt that takes longer than this moves to the slow lane, and its endpoint with it. */
export const SLOW_MS = 1_000;
/** One tenant's share of the slow lane. */
const SLOW_TENANT_SHARE = 0.25;
/** What claims leave free of the slow lane, for attempts of endpoints that turn out to be slow. */
const SLOW_RESERVE = 0.25;
/** The rest of the fast lane, of which each tenant gets little: many that fill the lane leave room for one more. */
const FAST_RESERVE = 0.125;
const SLOW_ENDPOINTS_KEPT = 10_000;

interface EndpointCap {
  inFlight: number;
  /** Its own cap over all replicas, and what its claim allowed while its circuit recovers. */
  concurrency: number;
  recovering: Recovery | null;
}

/** The cap that a claim found while the endpoint recovers from an open circuit: it doubles each second. */
interface Recovery {
  readonly cap: number;
  readonly foundAtMs: number;
}

/** The circuit's row says for so long that the endpoint recovers (see the claim). */
const RECOVERING_MS = 10_000;

/**
 * Who holds which slots. Two lanes keep hanging receivers from being everybody's outage:
 *
 *   start --endpoint not known as slow--> fast --ends within a second--> ended, the endpoint is not slow
 *                                          \--a second passes--> slow --> ended, the endpoint is slow
 *   start --endpoint known as slow--> slow
 *
 * so the fast lane is free of any hanging attempt after a second, and the slow lane is shared by tenants, a quarter at
 * most for each. With a full slow lane an attempt stays in the fast one, but its endpoint gets no more of it: with 400
 * endpoints of 20 tenants that hung together, another tenant waited for 8 s.
 */
export class InFlight {
  /** Living dispatchers, this one included: they share the endpoints' caps. */
  replicas = 1;
  readonly #settings: SlotSettings;
  readonly #endpoints = new Map<string, EndpointCap>();
  readonly #fastOfTenant = new Counts();
  readonly #slowOfTenant = new Counts();
  readonly #slowEndpoints = new Set<string>();
  /** Slots of the fast lane in the order of their start; ended ones are skipped when their second is over. */
  readonly #young: Slot[] = [];
  #youngFrom = 0;
  /** Slots of the fast lane that should be in the slow one, as soon as that has room. */
  #overdue: Slot[] = [];
  readonly #fastReserve: number;
  readonly #slowReserve: number;
  #fast = 0;
  #slow = 0;

  constructor(settings: SlotSettings) {
    this.#settings = settings;
    this.#fastReserve = Math.min(settings.concurrency - 1, Math.ceil(settings.concurrency * FAST_RESERVE));
    this.#slowReserve = Math.floor(settings.slowConcurrency * SLOW_RESERVE);
  }

  get count(): number {
    return this.#fast + this.#slow;
  }

  get slowCount(): number {
    return this.#slow;
  }

  /** Free slots of each lane, as claims may fill them. */
  get free(): { readonly fast: number; readonly slow: number } {
    return {
      fast: Math.max(0, this.#settings.concurrency - this.#fast),
      slow: Math.max(0, this.#slowRoom - this.#slowReserve),
    };
  }

  laneOf(endpointId: string): 'fast' | 'slow' {
    return this.#slowEndpoints.has(endpointId) ? 'slow' : 'fast';
  }

  /** How many more of an endpoint may be sent at once; what is not in flight is known to the claim alone. */
  freeOfEndpoint(endpointId: string, nowMs: number): number {
    const known = this.#endpoints.get(endpointId);
    return known === undefined
      ? this.#share(this.#settings.endpointConcurrency)
      : this.#capOf(known, nowMs) - known.inFlight;
  }

  /** How many slots of a lane a tenant may still take while so many of it are free. */
  freeOfTenant(tenantId: string, lane: 'fast' | 'slow', free: number): number {
    if (lane === 'slow')
      return Math.ceil(this.#settings.slowConcurrency * SLOW_TENANT_SHARE) - this.#slowOfTenant.of(tenantId);
    const held = this.#fastOfTenant.of(tenantId);
    // Of the rest an eighth for each who has not proved slow: 32 slots last for more than 20 newcomers.
    const rest = this.#slowOfTenant.of(tenantId) > 0 ? 1 : Math.max(1, Math.floor(free / 8));
    return Math.min(this.#settings.tenantConcurrency - held, Math.max(free - this.#fastReserve, rest - held));
  }

  start({ tenantId, endpointId, endpoint }: ClaimedDelivery, nowMs: number): Slot {
    const slot: Slot = { tenantId, endpointId, startedAtMs: nowMs, lane: this.laneOf(endpointId) };
    this.#count(slot, 1);
    if (slot.lane === 'fast') this.#young.push(slot);
    const concurrency = endpoint.concurrency ?? this.#settings.endpointConcurrency;
    const { recoveringCap } = endpoint;
    const recovering = recoveringCap === null ? null : { cap: recoveringCap, foundAtMs: nowMs };
    const known = this.#endpoints.get(endpointId);
    if (known === undefined) {
      this.#endpoints.set(endpointId, { inFlight: 1, concurrency, recovering });
    } else {
      known.inFlight += 1;
      known.concurrency = concurrency;
      known.recovering = recovering;
    }
    return slot;
  }

  end(slot: Slot, nowMs: number): void {
    this.#count(slot, -1);
    slot.lane = 'ended';
    if (nowMs - slot.startedAtMs > SLOW_MS) this.#markSlow(slot.endpointId);
    else this.#slowEndpoints.delete(slot.endpointId);
    const known = this.#endpoints.get(slot.endpointId)!;
    known.inFlight -= 1;
    if (known.inFlight === 0) this.#endpoints.delete(slot.endpointId);
  }

  /** Moves what has been in the fast lane for a second to the slow one, as far as that has room. */
  age(nowMs: number): void {
    for (;;) {
      const slot = this.#young[this.#youngFrom];
      if (slot === undefined) break;
      if (slot.lane === 'fast') {
        if (nowMs - slot.startedAtMs <= SLOW_MS) break;
        this.#markSlow(slot.endpointId);
        this.#overdue.push(slot);
      }
      this.#youngFrom += 1;
    }
    if (this.#youngFrom > 1_024 || this.#youngFrom === this.#young.length) {
      this.#young.splice(0, this.#youngFrom);
      this.#youngFrom = 0;
    }
    if (this.#overdue.length === 0) return;
    const waiting = this.#overdue.filter(({ lane }) => lane === 'fast');
    for (const slot of waiting.splice(0, Math.max(0, this.#slowRoom))) {
      this.#count(slot, -1);
      slot.lane = 'slow';
      this.#count(slot, 1);
    }
    this.#overdue = waiting;
  }

  /** The tenants and endpoints that hold all they may, for those who ask why a delivery waits. */
  atCap(nowMs: number): { tenants: string[]; endpoints: string[]; slotsFull: boolean } {
    const { tenantConcurrency, slowConcurrency } = this.#settings;
    const slowCap = Math.ceil(slowConcurrency * SLOW_TENANT_SHARE);
    const tenants = new Set([
      ...this.#fastOfTenant.atLeast(tenantConcurrency),
      ...this.#slowOfTenant.atLeast(slowCap),
    ]);
    const endpoints = [...this.#endpoints]
      .filter(([, known]) => known.inFlight >= this.#capOf(known, nowMs))
      .map(([id]) => id);
    return { tenants: [...tenants], endpoints, slotsFull: this.free.fast <= this.#fastReserve };
  }

  #count({ tenantId, lane }: Slot, difference: number): void {
    if (lane === 'fast') {
      this.#fast += difference;
      this.#fastOfTenant.add(tenantId, difference);
    } else {
      this.#slow += difference;
      this.#slowOfTenant.add(tenantId, difference);
    }
  }

  /** Asked for anew each time: shares change when a replica joins or dies, and a recovering cap grows, however long attempts take. */
  #capOf({ concurrency, recovering }: EndpointCap, nowMs: number): number {
    const cap = this.#share(concurrency);
    if (recovering === null || nowMs - recovering.foundAtMs >= RECOVERING_MS) return cap;
    return Math.min(cap, recovering.cap * 2 ** Math.floor((nowMs - recovering.foundAtMs) / 1_000));
  }

  get #slowRoom(): number {
    return this.#settings.slowConcurrency - this.#slow;
  }

  #share(cap: number): number {
    return Math.max(1, Math.floor(cap / this.replicas));
  }

  #markSlow(endpointId: string): void {
    if (this.#settings.slowConcurrency === 0) return;
    this.#slowEndpoints.delete(endpointId);
    this.#slowEndpoints.add(endpointId);
    if (this.#slowEndpoints.size > SLOW_ENDPOINTS_KEPT)
      this.#slowEndpoints.delete(this.#slowEndpoints.values().next().value!);
  }
}
