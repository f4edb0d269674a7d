import { formatId } from '#runtime';
import type { DeadLetter } from '#outbox';

/** A dead letter as the API shows it. */
export function deadLetterView(letter: DeadLetter) {
  return {
    delivery_id: formatId('delivery', letter.deliveryId),
    event_id: formatId('event', letter.eventId),
    endpoint_id: formatId('endpoint', letter.endpointId),
    reason: letter.reason,
    attempt_count: letter.attemptCount,
    died_at: letter.diedAt.toISOString(),
    resolved_at: letter.resolvedAt?.toISOString() ?? null,
  };
}
