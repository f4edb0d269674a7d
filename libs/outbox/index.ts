export { acceptEvents } from './accept-events.js';
export { announceEvents, hasAnnouncements } from './announce-events.js';
export { cancelDeleted } from './cancel-deleted.js';
export { cancelDelivery, type CancelResult } from './cancel-delivery.js';
export { cancelEvent, type CancelledOfEvent } from './cancel-event.js';
export { CLAIM_BYTES_MAX, claimDeliveries, type ClaimQuota } from './claim-deliveries.js';
export { claimIdempotencyKey, type IdempotencyUse, type KeyClaim } from './claim-idempotency-key.js';
export { circuitLessons, type CircuitLesson } from './circuit-lessons.js';
export { decideOutcome, type Standing } from './decide-outcome.js';
export { disableFailing, type DisabledEndpoint } from './disable-failing.js';
export {
  discoverEndpoints,
  NIL_UUID,
  type Discovery,
  type DiscoveryPlace,
  type DiscoveryStart,
  type SeenEndpoint,
} from './discover-endpoints.js';
export { ensureCircuits } from './ensure-circuits.js';
export { expireDeliveries } from './expire-deliveries.js';
export { countQueueBlocks, findLapsedClaims, type LapsedClaim } from './find-lapsed-claims.js';
export { giveBackDeliveries } from './give-back-deliveries.js';
export { createHints, formatHint, HINT_CHANNEL, parseHint, type Hints } from './hints.js';
export {
  dropReplica,
  keepReplica,
  measureReplicas,
  REPLICA_SILENT_MS,
  type ReplicaState,
} from './keep-replica.js';
export { measureQueue, type QueueMeasure } from './measure-queue.js';
export { nameKeyResource } from './name-key-resource.js';
export { IDEMPOTENCY_KEY_DAYS, purgeIdempotencyKeys } from './purge-idempotency-keys.js';
export { readSigningSecrets, type LiveSecret } from './read-signing-secrets.js';
export { recordAttempts, type CircuitChange, type Recorded } from './record-attempts.js';
export { baseWaitMs, readRetryPolicy, retryWaitMs, type RetryPolicy } from './retry-policy.js';
export { parseRetryAfter, RETRY_AFTER_MAX_MS } from './retry-after.js';
export { replayDelivery, type ReplayResult } from './replay-delivery.js';
export { sweepEndpoints, type SweptEndpoint } from './sweep-endpoints.js';
export { countPartitionDays } from './count-partition-days.js';
export type { DeliveryView } from './delivery-row.js';
export {
  listDeadLetters,
  type DeadLetter,
  type DeadLetterFilter,
  type DeadLetterPlace,
} from './list-dead-letters.js';
export { listDeliveries, type DeliveryFilter } from './list-deliveries.js';
export { listEvents, type EventFilter, type EventSummary } from './list-events.js';
export { readDeadLetter } from './read-dead-letter.js';
export { readDelivery, type AttemptView } from './read-delivery.js';
export { readEvent, type StoredEvent } from './read-event.js';
export { readStanding, type DeliveryStanding } from './read-standing.js';
export { addDelivery, type AddResult } from './add-delivery.js';
export { explainDelivery, type Explanation, type StandingReason } from './explain-delivery.js';
export type { Blocker, BlockerCode } from './explain-blockers.js';
export type {
  AcceptedEvent,
  AcceptResult,
  AttemptLesson,
  AttemptRecord,
  CircuitPolicy,
  Claim,
  ClaimedDelivery,
  ClaimedEndpoint,
  DeadReason,
  DeliveryState,
  EndpointRef,
  EventInput,
  Outcome,
  SettledAttempt,
  StoredDeliveryState,
} from './types.js';
export { matchEndpoints, type Matching, type MatchVerdict } from './match-endpoints.js';
