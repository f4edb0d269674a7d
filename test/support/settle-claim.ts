import type { AttemptRecord, ClaimedDelivery, Outcome, SettledAttempt } from '#outbox';

const ATTEMPTS: Record<
  AttemptRecord['outcome'],
  Pick<AttemptRecord, 'statusCode' | 'errorKind' | 'error'>
> = {
  succeeded: { statusCode: 200, errorKind: null, error: null },
  failed: { statusCode: 500, errorKind: 'http_status', error: 'the receiver answered 500' },
  lease_expired: { statusCode: null, errorKind: 'lease_expired', error: 'the worker is gone' },
};

type Claimed = Pick<
  ClaimedDelivery,
  'tenantId' | 'endpointId' | 'eventId' | 'deliveryId' | 'claimToken' | 'attemptNumber'
> &
  (Pick<ClaimedDelivery, 'endpoint'> | { readonly endpointRevision: number });

/** What a worker that holds this claim would record; a failure is due again at once unless told otherwise. */
export function settleClaim(
  claim: Claimed,
  result: AttemptRecord['outcome'],
  outcome: Outcome = result === 'succeeded' ? { state: 'succeeded' } : { state: 'failed', retryInMs: 0 },
): SettledAttempt {
  const { tenantId, endpointId, eventId, deliveryId, claimToken, attemptNumber } = claim;
  return {
    tenantId,
    endpointId,
    eventId,
    deliveryId,
    claimToken,
    attemptNumber,
    endpointRevision: 'endpoint' in claim ? claim.endpoint.revision : claim.endpointRevision,
    attempt: {
      outcome: result,
      responseBody: null,
      startedAtMs: Date.now(),
      durationMs: 12,
      ...ATTEMPTS[result],
    },
    outcome,
    lesson: null,
  };
}
