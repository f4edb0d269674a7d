import type { ClaimedEndpoint, ClaimQuota, EndpointRef } from '#outbox';
import { Later } from './later.js';

interface ReadyEndpoint extends EndpointRef {
  /** Nothing free is older than this, as far as anybody knows; milliseconds of the database's clock. */
  watermarkMs: number;
  /** The claim round in which it was last seen to have work. */
  seenInRound: number;
  /** Its last claim was full, so there is more behind. */
  deep: boolean;
}

interface Waiting {
  readonly endpoint: ReadyEndpoint;
  readonly askedAtMs: number;
  readonly untilMs: number;
}

/** Room left for a choice. */
export interface Room {
  readonly fast: number;
  readonly slow: number;
  laneOf(endpointId: string): 'fast' | 'slow';
  freeOfEndpoint(endpointId: string): number;
  /** How many slots of a lane a tenant may take while so many of it are left. */
  freeOfTenant(tenantId: string, lane: 'fast' | 'slow', left: number): number;
}

/** How many of a tenant's endpoints one claim takes at most, and looks at, so that its statement and choice stay small. */
const ENDPOINTS_PER_TENANT = 32;
const LOOKS_PER_TENANT = 256;
const ENDPOINTS_PER_CLAIM = 128;
/** From an endpoint with a backlog so many are taken at once: 64 endpoints × 4 cost twice what 16 × 16 did. */
const DEEP_QUOTA = 16;
/** An endpoint that had to wait is not asked for again by hints for so long: a thousand a second may name an open circuit. */
const ASK_AGAIN_MS = 1_000;
const STALE_ENTRIES_MAX = 1_024;

/**
 * The endpoints known to have due work, in fair order. An endpoint comes in by a hint, by discovery or by the sweep,
 * and leaves when a claim finds less than it was allowed to take:
 *
 *   unknown --seen--> ready --claim full--> ready (its watermark rises)
 *                       |\--claim short, not seen again meanwhile--> unknown
 *                       |\--held (paused, disabled, deleted), or gone with its tenant--> unknown
 *                        \--its circuit, rate or Retry-After says later--> waiting --its time, or a circuit change--> ready
 *
 * Tenants take turns, then a tenant's endpoints do: a tenant with a thousand busy endpoints gets the share of one.
 */
export class ReadyEndpoints {
  readonly #tenants = new Map<string, Map<string, ReadyEndpoint>>();
  readonly #waiting = new Map<string, Waiting>();
  #later = new Later<string>();
  #round = 0;
  #size = 0;

  /** Endpoints that may be chosen now. */
  get size(): number {
    return this.#size;
  }

  /** Entries kept for what waits, stale ones included. */
  get waitEntries(): number {
    return this.#later.size;
  }

  /** When the first of the waiting may be asked for again; infinite when none waits. */
  get nextAtMs(): number {
    return this.#later.nextAtMs;
  }

  /** Notes that an endpoint has due work, no older than `dueAtMs`; a hint, which knows no time, is about what is new. */
  see({ tenantId, endpointId }: EndpointRef, dueAtMs: number | null, nowMs: number): void {
    const waits = this.#waiting.get(endpointId);
    if (waits !== undefined) {
      waits.endpoint.watermarkMs = Math.min(waits.endpoint.watermarkMs, dueAtMs ?? Infinity);
      if (nowMs - waits.askedAtMs >= ASK_AGAIN_MS) this.#return(endpointId);
      return;
    }
    const known = this.#tenants.get(tenantId)?.get(endpointId);
    if (known === undefined) {
      this.#add({
        tenantId,
        endpointId,
        watermarkMs: dueAtMs ?? 0,
        seenInRound: this.#round,
        deep: false,
      });
    } else {
      known.seenInRound = this.#round;
      known.watermarkMs = Math.min(known.watermarkMs, dueAtMs ?? Infinity);
    }
  }

  /**
   * It asked to be left alone for so long: not chosen meanwhile. The record that says so to all is written a moment
   * later, and until then a claim would take the next delivery.
   */
  hold({ tenantId, endpointId }: EndpointRef, holdMs: number, nowMs: number): void {
    const waits = this.#waiting.get(endpointId);
    // It may wait for a token that comes sooner.
    if (waits !== undefined)
      return this.#wait(waits.endpoint, Math.max(holdMs, waits.untilMs - nowMs), nowMs);
    const known = this.#tenants.get(tenantId)?.get(endpointId);
    if (known !== undefined) this.#remove(known);
    const fresh = { tenantId, endpointId, watermarkMs: 0, seenInRound: this.#round, deep: false };
    this.#wait(known ?? fresh, holdMs, nowMs);
  }

  /** It is there no more. */
  forget({ tenantId, endpointId }: EndpointRef): void {
    const known = this.#tenants.get(tenantId)?.get(endpointId);
    if (known !== undefined) this.#remove(known);
  }

  /** Its circuit changed: whatever it waits for is to be asked anew. */
  askAnew(endpointId: string): void {
    if (this.#waiting.has(endpointId)) this.#return(endpointId);
  }

  /** Lets those come back whose time has come. */
  wake(nowMs: number): void {
    for (let id = this.#later.take(nowMs); id !== undefined; id = this.#later.take(nowMs)) {
      const waits = this.#waiting.get(id);
      // Of an older wait, and that one has become longer since.
      if (waits !== undefined && waits.untilMs <= nowMs) this.#return(id);
    }
  }

  /**
   * Shares the free slots of each lane out: evenly over the tenants that have room, then over each one's endpoints.
   * Those that were chosen go to the back of their lines.
   */
  choose(room: Room): ClaimQuota[] {
    this.#round += 1;
    const quotas: ClaimQuota[] = [];
    const left = { fast: room.fast, slow: room.slow };
    let tenantsLeft = this.#tenants.size;
    for (const [tenantId, endpoints] of this.#tenants) {
      if (tenantsLeft === 0 || (left.fast <= 0 && left.slow <= 0) || quotas.length >= ENDPOINTS_PER_CLAIM)
        break;
      const share = {
        fast: shareOf(left.fast, tenantsLeft, room.freeOfTenant(tenantId, 'fast', left.fast)),
        slow: shareOf(left.slow, tenantsLeft, room.freeOfTenant(tenantId, 'slow', left.slow)),
      };
      tenantsLeft -= 1;
      if (share.fast <= 0 && share.slow <= 0) continue;
      const chosen = chooseOfTenant(endpoints, share, room);
      if (chosen.length === 0) continue;
      for (const quota of chosen) left[room.laneOf(quota.endpointId)] -= quota.quota;
      quotas.push(...chosen);
      this.#tenants.delete(tenantId);
      this.#tenants.set(tenantId, endpoints);
    }
    return quotas;
  }

  /** Takes in how a claim found a chosen endpoint: what it took, and whether it may be asked again at once. */
  settle(
    endpoint: ClaimedEndpoint,
    claimed: { readonly count: number; readonly lastDueAtMs: number },
    { nowMs, slackMs }: { readonly nowMs: number; readonly slackMs: number },
  ): void {
    const known = this.#tenants.get(endpoint.tenantId)?.get(endpoint.endpointId);
    if (known === undefined) return;
    const seenSince = known.seenInRound >= this.#round;
    const drained = claimed.count < endpoint.allowed && !seenSince;
    if (claimed.count > 0 && !seenSince) {
      known.watermarkMs = Math.max(known.watermarkMs, claimed.lastDueAtMs - slackMs);
    }
    known.deep = endpoint.allowed > 0 && claimed.count >= endpoint.allowed;
    if (endpoint.standing === 'held' || drained) {
      this.#remove(known);
    } else if (endpoint.waitMs !== null && endpoint.standing !== 'probe') {
      this.#remove(known);
      this.#wait(known, endpoint.waitMs, nowMs);
    }
  }

  #wait(endpoint: ReadyEndpoint, waitMs: number, nowMs: number): void {
    const untilMs = nowMs + Math.max(1, waitMs);
    this.#waiting.set(endpoint.endpointId, { endpoint, askedAtMs: nowMs, untilMs });
    this.#later.add(untilMs, endpoint.endpointId);
    // What waits for an hour and is asked for each second leaves an entry each time: 58 MB for 200 endpoints.
    if (this.#later.size > 2 * this.#waiting.size + STALE_ENTRIES_MAX) this.#forgetStaleEntries();
  }

  #forgetStaleEntries(): void {
    this.#later = new Later();
    for (const [endpointId, { untilMs }] of this.#waiting) this.#later.add(untilMs, endpointId);
  }

  #return(endpointId: string): void {
    const { endpoint } = this.#waiting.get(endpointId)!;
    this.#waiting.delete(endpointId);
    if (this.#tenants.get(endpoint.tenantId)?.has(endpointId) !== true) this.#add(endpoint);
  }

  #add(endpoint: ReadyEndpoint): void {
    let endpoints = this.#tenants.get(endpoint.tenantId);
    if (endpoints === undefined) this.#tenants.set(endpoint.tenantId, (endpoints = new Map()));
    endpoints.set(endpoint.endpointId, endpoint);
    this.#size += 1;
  }

  #remove({ tenantId, endpointId }: EndpointRef): void {
    const endpoints = this.#tenants.get(tenantId)!;
    endpoints.delete(endpointId);
    this.#size -= 1;
    if (endpoints.size === 0) this.#tenants.delete(tenantId);
  }
}

function shareOf(slots: number, tenantsLeft: number, freeOfTenant: number): number {
  return slots <= 0 ? 0 : Math.min(freeOfTenant, Math.max(1, Math.floor(slots / tenantsLeft)));
}

function chooseOfTenant(
  endpoints: Map<string, ReadyEndpoint>,
  share: { readonly fast: number; readonly slow: number },
  room: Room,
): ClaimQuota[] {
  const left = { ...share };
  const candidates = { fast: [] as [ReadyEndpoint, number][], slow: [] as [ReadyEndpoint, number][] };
  for (const endpoint of firstOf(endpoints.values(), LOOKS_PER_TENANT)) {
    const lane = room.laneOf(endpoint.endpointId);
    const free = room.freeOfEndpoint(endpoint.endpointId);
    if (free > 0 && candidates[lane].length < Math.min(ENDPOINTS_PER_TENANT, left[lane])) {
      candidates[lane].push([endpoint, free]);
    } else if (endpoints.size > LOOKS_PER_TENANT) {
      // Nobody behind it would ever be looked at.
      toBack(endpoints, endpoint);
    }
  }
  const quotas: ClaimQuota[] = [];
  for (const lane of ['fast', 'slow'] as const) {
    for (const [index, [endpoint, free]] of candidates[lane].entries()) {
      if (left[lane] <= 0) break;
      const fair = Math.max(1, Math.floor(left[lane] / (candidates[lane].length - index)));
      const quota = Math.min(free, left[lane], endpoint.deep ? Math.max(fair, DEEP_QUOTA) : fair);
      left[lane] -= quota;
      toBack(endpoints, endpoint);
      const { tenantId, endpointId, watermarkMs } = endpoint;
      quotas.push({ tenantId, endpointId, quota, watermarkMs });
    }
  }
  return quotas;
}

function toBack(endpoints: Map<string, ReadyEndpoint>, endpoint: ReadyEndpoint): void {
  endpoints.delete(endpoint.endpointId);
  endpoints.set(endpoint.endpointId, endpoint);
}

function* firstOf<Item>(items: Iterable<Item>, count: number): Iterable<Item> {
  let taken = 0;
  for (const item of items) {
    if (taken === count) return;
    taken += 1;
    yield item;
  }
}
