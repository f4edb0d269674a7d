export { readCircuit, type Circuit, type CircuitState } from './circuit.js';
export { createEndpoint, type NewEndpoint } from './create-endpoint.js';
export { EndpointSecret } from './endpoint-secret.entity.js';
export { Endpoint, ENDPOINT_STATUSES, type DisabledReason, type EndpointStatus } from './endpoint.entity.js';
export {
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
  readDeliveryPolicy,
  type DeliveryPolicy,
  type DeliveryPolicyInput,
  type TimeoutLimits,
} from './read-delivery-policy.js';
export { FILTER_LIMITS, readFilter, type CompiledFilter, type Filter } from './read-filter.js';
export { findEndpoint, listEndpoints, type SubscribedEndpoint } from './read-endpoint.js';
export { type RetryBackoff, type RetryPolicy, type RetrySchedule } from './read-retry.js';
export { Subscription } from './subscription.entity.js';
export {
  deleteEndpoint,
  updateEndpoint,
  type EndpointChange,
  type VersionExpectation,
} from './update-endpoint.js';
