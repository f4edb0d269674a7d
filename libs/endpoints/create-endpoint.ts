import type { EgressPolicy } from '#egress';
import { newId, transactionTimeMs } from '#runtime';
import type { Keyring } from '#secrets';
import type { TenantTransaction } from '#tenants';
import { acceptDescription, acceptEventTypes, acceptSecret, acceptUrl } from './endpoint-input.js';
import { Endpoint, type EndpointStatus } from './endpoint.entity.js';
import type { DeliveryPolicy } from './read-delivery-policy.js';
import { findEndpoint, type SubscribedEndpoint } from './read-endpoint.js';
import { storeSecret } from './store-secret.js';
import { replaceSubscriptions } from './subscriptions.js';

export interface NewEndpoint {
  readonly url: string;
  readonly description?: string;
  /** Null, an empty list or `*`: all event types. */
  readonly eventTypes?: readonly string[] | null;
  readonly status?: EndpointStatus;
  readonly secret?: string;
  readonly delivery?: Partial<DeliveryPolicy>;
}

/**
 * Stores an endpoint with its subscription and its signing secret, sealed. The secret is in this answer and in no later one.
 */
export async function createEndpoint(
  tx: TenantTransaction,
  tenantId: string,
  input: NewEndpoint,
  policy: EgressPolicy,
  keyring: Keyring,
): Promise<{ endpoint: SubscribedEndpoint; secret: string }> {
  const url = acceptUrl(input.url, policy);
  const secret = acceptSecret(input.secret);
  const eventTypes = acceptEventTypes(input.eventTypes ?? null);
  const description = acceptDescription(input.description ?? '');
  const id = newId(await transactionTimeMs(tx));
  await tx
    .getRepository(Endpoint)
    .insert({ tenantId, id, url, description, status: input.status ?? 'enabled', ...input.delivery });
  await storeSecret(tx, tenantId, id, secret, keyring);
  await replaceSubscriptions(tx, tenantId, id, eventTypes);
  return { endpoint: await findEndpoint(tx, tenantId, id), secret };
}
