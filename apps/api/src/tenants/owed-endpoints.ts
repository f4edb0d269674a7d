import { NIL_UUID, sweepEndpoints, type EndpointRef } from '#outbox';
import type { Queryable } from '#runtime';

/** Dispatchers are told of so many; the rest their sweep finds. */
const ENDPOINTS_MAX = 1_000;

/** Endpoints of a tenant that are owed something, to tell the dispatchers of. */
export async function owedEndpoints(db: Queryable, tenantId: string): Promise<readonly EndpointRef[]> {
  const swept = await sweepEndpoints(db, { tenantId, endpointId: NIL_UUID }, ENDPOINTS_MAX);
  return swept.filter((endpoint) => endpoint.tenantId === tenantId);
}
