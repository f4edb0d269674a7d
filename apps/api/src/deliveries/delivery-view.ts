import { derivedId, formatId, formatIdOrNull } from '#runtime';
import type { AttemptView, DeliveryView } from '#outbox';

/** A delivery as the API shows it. */
export function deliveryView(delivery: DeliveryView) {
  return {
    id: formatId('delivery', delivery.id),
    event_id: formatId('event', delivery.eventId),
    event_type: delivery.eventType,
    endpoint_id: formatId('endpoint', delivery.endpointId),
    consumer_id: formatIdOrNull('consumer', delivery.consumerId),
    state: delivery.state,
    attempt_count: delivery.attemptCount,
    next_attempt_at: delivery.nextAttemptAt?.toISOString() ?? null,
    last_status_code: delivery.lastStatusCode,
    last_error_kind: delivery.lastErrorKind,
    dead_reason: delivery.deadReason,
    created_at: delivery.createdAt.toISOString(),
    expires_at: delivery.expiresAt.toISOString(),
    finished_at: delivery.finishedAt?.toISOString() ?? null,
  };
}

/** An attempt as the API shows it. What a receiver answered is any bytes: shown as text, with U+FFFD for what is none. */
export function attemptView(deliveryId: string, attempt: AttemptView) {
  return {
    id: formatId('attempt', attemptId(deliveryId, attempt.number)),
    number: attempt.number,
    outcome: attempt.outcome,
    status_code: attempt.statusCode,
    error_kind: attempt.errorKind,
    error: attempt.error,
    response_body: attempt.responseBody?.toString('utf8') ?? null,
    started_at: attempt.startedAt.toISOString(),
    duration_ms: Math.round(attempt.durationMs * 1000) / 1000,
  };
}

function attemptId(deliveryId: string, number: number): string {
  return derivedId(deliveryId, number.toString(16).padStart(32, '0'));
}
