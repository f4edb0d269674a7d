import { IsNull, LessThan } from 'typeorm';
import { AppError } from '#runtime';
import type { Repositories } from '#tenants';
import { Endpoint } from './endpoint.entity.js';
import { readSubscriptions } from './subscriptions.js';

/** An endpoint with the entries of its subscription. */
export interface SubscribedEndpoint {
  readonly endpoint: Endpoint;
  readonly eventTypes: readonly string[];
}

/** The tenant's endpoint; throws `endpoint_not_found` when it is not there, deleted, or somebody else's. */
export async function findEndpoint(
  source: Repositories,
  tenantId: string,
  endpointId: string,
): Promise<SubscribedEndpoint> {
  const endpoint = await source
    .getRepository(Endpoint)
    .findOneBy({ tenantId, id: endpointId, deletedAt: IsNull() });
  if (endpoint === null) throw new AppError('endpoint_not_found');
  const entries = await readSubscriptions(source, tenantId, [endpointId]);
  return { endpoint, eventTypes: entries.get(endpointId)! };
}

/** The tenant's endpoints, newest first, at most `limit`: those older than `afterId` and of one consumer, where given. */
export async function listEndpoints(
  source: Repositories,
  tenantId: string,
  {
    limit,
    afterId,
    consumerId,
  }: { readonly limit: number; readonly afterId: string | null; readonly consumerId: string | null },
): Promise<SubscribedEndpoint[]> {
  const endpoints = await source.getRepository(Endpoint).find({
    where: {
      tenantId,
      deletedAt: IsNull(),
      ...(afterId === null ? {} : { id: LessThan(afterId) }),
      ...(consumerId === null ? {} : { consumerId }),
    },
    order: { id: 'DESC' },
    take: limit,
  });
  const entries = await readSubscriptions(
    source,
    tenantId,
    endpoints.map((endpoint) => endpoint.id),
  );
  return endpoints.map((endpoint) => ({ endpoint, eventTypes: entries.get(endpoint.id)! }));
}
