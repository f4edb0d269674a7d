import { formatId } from '#runtime';
import type { DeliveryStanding, Explanation } from '#outbox';
import { attemptView } from './delivery-view.js';

/** Why a delivery is where it is, as the API tells it. */
export function explanationView(standing: DeliveryStanding, explanation: Explanation) {
  const { queued, lastAttempt } = standing;
  const waiting = queued !== null && queued.leaseUntil === null;
  return {
    delivery_id: formatId('delivery', standing.deliveryId),
    event_id: formatId('event', standing.eventId),
    endpoint_id: formatId('endpoint', standing.endpointId),
    state: standing.state,
    reason: explanation.reason,
    summary: explanation.summary,
    blocked_by: explanation.blockedBy.map(({ code, detail, until, movesWhen }) => ({
      code,
      detail,
      until: until?.toISOString() ?? null,
      moves_when: movesWhen,
    })),
    next_attempt_at: waiting ? queued.dueAt.toISOString() : null,
    earliest_attempt_at: explanation.earliestAttemptAt?.toISOString() ?? null,
    expires_at: standing.expiresAt.toISOString(),
    attempt_count: standing.attemptCount,
    deliveries_ahead: waiting ? queued.ahead : null,
    last_attempt: lastAttempt && attemptView(standing.deliveryId, lastAttempt),
    evaluated_at: standing.readAt.toISOString(),
  };
}
