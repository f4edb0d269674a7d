import type { ClaimQuota, EndpointRef } from '#outbox';

interface ReadyEndpoint extends EndpointRef {
  watermarkMs: number;
  /** The claim round in which it was last seen to have work. */
  seenInRound: number;
}

/** Room left for a choice. */
export interface Room {
  readonly slots: number;
  readonly endpointLimit: number;
  readonly tenantLimit: number;
  inFlight(endpointId: string): number;
  inFlightOfTenant(tenantId: string): number;
}

/** How many of a tenant's endpoints one claim takes at most, so that its statement stays small. */
const ENDPOINTS_PER_TENANT = 32;
const ENDPOINTS_PER_CLAIM = 128;

/**
 * The endpoints known to have due work, in fair order. An endpoint comes in by a hint, by discovery or by the sweep,
 * and leaves when a claim finds less than its quota:
 *
 *   unknown --seen--> ready --claim full--> ready (its watermark rises)
 *                       \--claim short, not seen again meanwhile--> unknown
 *
 * Tenants take turns, then a tenant's endpoints do: a tenant with a thousand busy endpoints gets the share of one.
 */
export class ReadyEndpoints {
  readonly #tenants = new Map<string, Map<string, ReadyEndpoint>>();
  #round = 0;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** Notes that an endpoint may have due work of any age. */
  see({ tenantId, endpointId }: EndpointRef): void {
    let endpoints = this.#tenants.get(tenantId);
    if (endpoints === undefined) this.#tenants.set(tenantId, (endpoints = new Map()));
    const known = endpoints.get(endpointId);
    if (known === undefined) {
      endpoints.set(endpointId, { tenantId, endpointId, watermarkMs: 0, seenInRound: this.#round });
      this.#size += 1;
    } else {
      known.seenInRound = this.#round;
      known.watermarkMs = 0;
    }
  }

  /**
   * Shares the free slots out: evenly over the tenants that have room, then over each one's endpoints. Those that
   * were chosen go to the back of their lines.
   */
  choose(room: Room): ClaimQuota[] {
    this.#round += 1;
    const quotas: ClaimQuota[] = [];
    let slots = room.slots;
    let tenantsLeft = this.#tenants.size;
    for (const [tenantId, endpoints] of Array.from(this.#tenants)) {
      if (slots <= 0 || quotas.length >= ENDPOINTS_PER_CLAIM) break;
      const free = room.tenantLimit - room.inFlightOfTenant(tenantId);
      const share = Math.min(free, Math.max(1, Math.floor(slots / tenantsLeft)));
      tenantsLeft -= 1;
      if (share <= 0) continue;
      const chosen = chooseOfTenant(endpoints, share, room);
      for (const quota of chosen) slots -= quota.quota;
      quotas.push(...chosen);
      this.#tenants.delete(tenantId);
      this.#tenants.set(tenantId, endpoints);
    }
    return quotas;
  }

  /** Takes in how far a claim got with a chosen endpoint: short of its quota, it has nothing more for now. */
  settle(
    quota: ClaimQuota,
    claimed: { readonly count: number; readonly lastDueAtMs: number },
    slackMs: number,
  ): void {
    const endpoints = this.#tenants.get(quota.tenantId);
    const known = endpoints?.get(quota.endpointId);
    if (endpoints === undefined || known === undefined) return;
    const seenSince = known.seenInRound >= this.#round;
    if (claimed.count < quota.quota && !seenSince) {
      endpoints.delete(quota.endpointId);
      this.#size -= 1;
      if (endpoints.size === 0) this.#tenants.delete(quota.tenantId);
    } else if (claimed.count > 0 && !seenSince) {
      known.watermarkMs = Math.max(known.watermarkMs, claimed.lastDueAtMs - slackMs);
    }
  }
}

function chooseOfTenant(endpoints: Map<string, ReadyEndpoint>, share: number, room: Room): ClaimQuota[] {
  const withRoom = [...endpoints.values()]
    .map((endpoint) => ({ endpoint, free: room.endpointLimit - room.inFlight(endpoint.endpointId) }))
    .filter(({ free }) => free > 0)
    .slice(0, Math.min(ENDPOINTS_PER_TENANT, share));
  let left = share;
  return withRoom.map(({ endpoint, free }, index) => {
    const quota = Math.min(free, Math.max(1, Math.floor(left / (withRoom.length - index))));
    left -= quota;
    endpoints.delete(endpoint.endpointId);
    endpoints.set(endpoint.endpointId, endpoint);
    return {
      tenantId: endpoint.tenantId,
      endpointId: endpoint.endpointId,
      quota,
      watermarkMs: endpoint.watermarkMs,
    };
  });
}
