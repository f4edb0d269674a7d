import type { EgressPolicy } from '#egress';
import { newId } from '#runtime';
import type { TenantTransaction } from '#tenants';
import { acceptDescription, acceptEventTypes, acceptSecret, acceptUrl } from './endpoint-input.js';
import { EndpointSecret } from './endpoint-secret.entity.js';
import { Endpoint, type EndpointStatus } from './endpoint.entity.js';
import type { DeliveryPolicy } from './read-delivery-policy.js';
import { readFilter } from './read-filter.js';
import { findEndpoint, type SubscribedEndpoint } from './read-endpoint.js';
import { replaceSubscriptions } from './subscriptions.js';

export interface NewEndpoint {
  readonly url: string;
  readonly description?: string;
  /** Null, an empty list or `*`: all event types. */
  readonly eventTypes?: readonly string[] | null;
  /** What payloads must be like; null, or none, takes all. */
  readonly filter?: unknown;
  readonly status?: EndpointStatus;
  readonly secret?: string;
  readonly delivery?: Partial<DeliveryPolicy>;
}

/**
 * Stores an endpoint with its subscription and its signing secret. The secret is in this answer and in no later one.
 */
export async function createEndpoint(
  tx: TenantTransaction,
  tenantId: string,
  input: NewEndpoint,
  policy: EgressPolicy,
): Promise<{ endpoint: SubscribedEndpoint; secret: string }> {
  const id = newId();
  const url = acceptUrl(input.url, policy);
  const secret = acceptSecret(input.secret);
  const eventTypes = acceptEventTypes(input.eventTypes ?? null);
  const description = acceptDescription(input.description ?? '');
  const compiled = readFilter(input.filter ?? null);
  const filter = { filter: compiled?.filter ?? null, filterPath: compiled?.path ?? null };
  await tx.getRepository(Endpoint).insert({
    tenantId,
    id,
    url,
    description,
    status: input.status ?? 'enabled',
    ...filter,
    ...input.delivery,
  });
  await tx.getRepository(EndpointSecret).insert({ tenantId, endpointId: id, id: newId(), secret });
  await replaceSubscriptions(tx, tenantId, id, eventTypes);
  return { endpoint: await findEndpoint(tx, tenantId, id), secret };
}
