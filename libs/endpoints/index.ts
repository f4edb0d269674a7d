export { createEndpoint, type NewEndpoint } from './create-endpoint.js';
export { EndpointSecret } from './endpoint-secret.entity.js';
export { Endpoint, ENDPOINT_STATUSES, type EndpointStatus } from './endpoint.entity.js';
export {
  EVENT_TYPE_CHARACTERS_MAX,
  isEventType,
  OPERATOR_PREFIX,
  readEventTypes,
  SUBSCRIPTION_ENTRIES_MAX,
} from './event-type.js';
export { findEndpoint, listEndpoints, type SubscribedEndpoint } from './read-endpoint.js';
export { Subscription } from './subscription.entity.js';
export {
  deleteEndpoint,
  updateEndpoint,
  type EndpointChange,
  type VersionExpectation,
} from './update-endpoint.js';
