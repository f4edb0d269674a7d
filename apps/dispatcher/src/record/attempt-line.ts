import type { SettledAttempt } from '#outbox';
import { formatId } from '#runtime';

/** The log's line about one attempt, with every id. `moved` is false for one whose claim no longer stood. */
export function attemptLine({ attempt, outcome, ...ids }: SettledAttempt, moved: boolean): object {
  return {
    event: 'delivery.attempt',
    tenant_id: formatId('tenant', ids.tenantId),
    event_id: formatId('event', ids.eventId),
    endpoint_id: formatId('endpoint', ids.endpointId),
    delivery_id: formatId('delivery', ids.deliveryId),
    attempt: ids.attemptNumber,
    outcome: attempt.outcome,
    status_code: attempt.statusCode,
    error_kind: attempt.errorKind,
    duration_ms: Math.round(attempt.durationMs * 10) / 10,
    state: moved ? outcome.state : 'superseded',
    ...(outcome.state === 'failed' ? { retry_in_ms: outcome.retryInMs } : {}),
    ...(outcome.state === 'dead' ? { dead_reason: outcome.reason } : {}),
  };
}
