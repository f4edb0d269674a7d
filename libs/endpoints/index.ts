export { readCircuit, type Circuit, type CircuitState } from './circuit.js';
export { createEndpoint, type NewEndpoint } from './create-endpoint.js';
export { deleteConsumer } from './delete-consumer.js';
export { EndpointSecret } from './endpoint-secret.entity.js';
export { Endpoint, ENDPOINT_STATUSES, type DisabledReason, type EndpointStatus } from './endpoint.entity.js';
export { DESCRIPTION_CHARACTERS_MAX } from './endpoint-input.js';
export {
  ENTRY,
  EVENT_TYPE,
  EVENT_TYPE_CHARACTERS_MAX,
  isEventType,
  OPERATOR_EVENT_TYPES,
  OPERATOR_PREFIX,
  readEventTypes,
  type EventTypesVerdict,
  SUBSCRIPTION_ENTRIES_MAX,
} from './event-type.js';
export { measureEndpoints, type EndpointCounts } from './measure-endpoints.js';
export {
  POLICY_BOUNDS,
  readDeliveryPolicy,
  type DeliveryPolicy,
  type DeliveryPolicyInput,
  type TimeoutLimits,
} from './read-delivery-policy.js';
export { FILTER_LIMITS, readFilter, type CompiledFilter, type Filter } from './read-filter.js';
export { findEndpoint, listEndpoints, type SubscribedEndpoint } from './read-endpoint.js';
export {
  ATTEMPTS,
  RETRY_WAITS_MAX,
  type RetryBackoff,
  type RetryPolicy,
  type RetrySchedule,
  WAIT_SECONDS,
} from './read-retry.js';
export { type Bounds } from './read-field.js';
export { Subscription } from './subscription.entity.js';
export {
  LIVE_SECRETS_MAX,
  listSecrets,
  revokeSecret,
  readSecret,
  rotateSecret,
  type ChangedSecret,
  type NewSecret,
  SECRET_OVERLAP_SECONDS,
} from './rotate-secret.js';
export { deleteEndpoint, updateEndpoint, type EndpointChange } from './update-endpoint.js';
