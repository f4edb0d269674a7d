import type { EgressPolicy } from '#egress';
import { newId, transactionTimeMs, type ConsumerReference } from '#runtime';
import type { Keyring } from '#secrets';
import { lockConsumer, type TenantTransaction } from '#tenants';
import {
  acceptDescription,
  acceptEventTypes,
  acceptSecret,
  acceptUrl,
  refuseOperatorEvents,
} from './endpoint-input.js';
import { Endpoint, type EndpointStatus } from './endpoint.entity.js';
import type { DeliveryPolicy } from './read-delivery-policy.js';
import { readFilter } from './read-filter.js';
import { findEndpoint, type SubscribedEndpoint } from './read-endpoint.js';
import { storeSecret } from './store-secret.js';
import { replaceSubscriptions } from './subscriptions.js';

export interface NewEndpoint {
  /** Whose it is; the tenant's own when it is null or left out. */
  readonly consumer?: ConsumerReference | null;
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
 * Stores an endpoint with its subscription and its signing secret, sealed. The secret is in this answer and in no later
 * one. Throws `consumer_not_found` for a consumer that is not there; one that is being deleted gets no more endpoints.
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
  const consumerId = await readConsumer(tx, tenantId, input);
  const compiled = readFilter(input.filter ?? null);
  const id = newId(await transactionTimeMs(tx));
  await tx.getRepository(Endpoint).insert({
    tenantId,
    id,
    consumerId,
    url,
    description,
    status: input.status ?? 'enabled',
    filter: compiled?.filter ?? null,
    filterPath: compiled?.path ?? null,
    ...input.delivery,
  });
  await storeSecret(tx, tenantId, id, secret, keyring);
  await replaceSubscriptions(tx, tenantId, { id, consumerId }, eventTypes);
  return { endpoint: await findEndpoint(tx, tenantId, id), secret };
}

async function readConsumer(
  tx: TenantTransaction,
  tenantId: string,
  { consumer, eventTypes = null }: NewEndpoint,
): Promise<string | null> {
  if (!consumer) return null;
  refuseOperatorEvents(eventTypes);
  return (await lockConsumer(tx, tenantId, consumer, 'for_key_share')).id;
}
