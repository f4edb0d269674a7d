import { formatId, formatIdOrNull } from '#runtime';
import type { SubscribedEndpoint } from '#endpoints';
import { deliveryPolicyView } from './delivery-policy-view.js';

/** An endpoint as the API shows it; never with a secret. */
export function endpointView({ endpoint, eventTypes }: SubscribedEndpoint) {
  return {
    id: formatId('endpoint', endpoint.id),
    consumer_id: formatIdOrNull('consumer', endpoint.consumerId),
    url: endpoint.url,
    description: endpoint.description,
    event_types: eventTypes,
    // As it was given: an object of paths and operators.
    filter: endpoint.filter as Readonly<Record<string, unknown>> | null,
    status: endpoint.status,
    disabled_reason: endpoint.disabledReason,
    ...deliveryPolicyView(endpoint),
    revision: endpoint.revision,
    version: endpoint.version,
    created_at: endpoint.createdAt.toISOString(),
    updated_at: endpoint.updatedAt.toISOString(),
  };
}
