// The one place where the bench calls the product's own functions: their doors may change a little.
import { randomUUID } from 'node:crypto';
import { bootstrapTenant } from '#tenants';
import { readFilter } from '#endpoints';
import { acceptEvents, claimDeliveries, discoverEndpoints } from '#outbox';

const LEASE_MS = 60_000;
const DAY_MS = 86_400_000;

/** Makes the first tenant with an admin key, by the product's own first start. */
export function firstTenant(databaseUrl) {
  return bootstrapTenant(databaseUrl);
}

/** One claim of up to `quota` rows of each endpoint ({tenant_id, id, watermarkMs}); returns the deliveries. */
export async function claim(db, endpoints, quota) {
  const quotas = endpoints.map(({ tenant_id: tenantId, id: endpointId, watermarkMs = 0 }) => ({
    tenantId,
    endpointId,
    quota,
    watermarkMs,
  }));
  const { deliveries } = await claimDeliveries(db, quotas, { claimToken: randomUUID(), leaseMs: LEASE_MS });
  return deliveries;
}

/** One discovery step over what fell due in that time; returns the endpoints. */
export async function discover(db, { lookBackMs, limit = 1_000 }) {
  const { endpoints } = await discoverEndpoints(db, { lookBackMs }, limit);
  return endpoints;
}

/** A filter as an endpoint's row keeps it: as it was given, and as a jsonpath. */
export function compileFilter(filter) {
  return readFilter(filter);
}

/** Accepts events ({tenantId, eventType, payload}) in one statement. */
export async function accept(db, events) {
  const inputs = events.map((event) => ({
    contentType: 'application/json',
    metadata: null,
    notBefore: null,
    idempotency: null,
    ...event,
  }));
  await acceptEvents(db, inputs, { maxAgeMs: DAY_MS });
}
