import { retryWaitMs, type RetryPolicy } from './retry-policy.js';
import type { AttemptRecord, DeadReason, Outcome } from './types.js';

/** Where the delivery stands after an attempt. All times are the database's. */
export interface Standing {
  readonly cycleAttemptNumber: number;
  readonly expiresAtMs: number;
  readonly nowMs: number;
  /** True for a request that cannot be built or signed: no retry will change that. */
  readonly unsendable: boolean;
  /** What the receiver asked for by `Retry-After`, already bounded; null for nothing. */
  readonly retryAfterMs: number | null;
}

/** Answers below 500 that may be different next time: a timeout, "too early", "too many". */
const PASSING = new Set([408, 425, 429]);
const GONE = 410;

/**
 * What follows an attempt: a success ends the delivery, a failure is retried after the policy's wait (or the
 * receiver's, if that is longer), and the debt ends when the attempts or its time run out. 410 ends it whatever the
 * policy says. Pure: `random` is a number from 0 up to 1.
 */
export function decideOutcome(
  attempt: AttemptRecord,
  standing: Standing,
  policy: RetryPolicy,
  random: number,
): Outcome {
  if (attempt.outcome === 'succeeded') return { state: 'succeeded' };
  if (standing.unsendable) return dead('unsendable');
  if (attempt.statusCode === GONE) return dead('gone');
  if (policy.retryOn === 'transient' && isFinal(attempt.statusCode)) return dead('rejected');
  const waitMs = retryWaitMs(policy, standing.cycleAttemptNumber, random);
  if (waitMs === null) return dead('exhausted');
  const retryInMs = Math.max(waitMs, standing.retryAfterMs ?? 0);
  if (standing.nowMs + retryInMs > standing.expiresAtMs) return dead('expired');
  return { state: 'failed', retryInMs };
}

/** No status at all (a timeout, a refused connection) may pass; of the statuses, 5xx and a few below. */
function isFinal(statusCode: number | null): boolean {
  return statusCode !== null && statusCode < 500 && !PASSING.has(statusCode);
}

function dead(reason: DeadReason): Outcome {
  return { state: 'dead', reason };
}
