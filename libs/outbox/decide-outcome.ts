import type { AttemptRecord, DeadReason, Outcome } from './types.js';

/** When a failed delivery is tried again, and when it is given up. */
export interface RetryPolicy {
  /** The wait after the 1st, 2nd, … failure; one more failure than there are waits is the last. */
  readonly delaysMs: readonly number[];
  /** 0.2 spreads each wait evenly over ±20 %. */
  readonly jitter: number;
}

/** Where the delivery stands after an attempt. All times are the database's. */
export interface Standing {
  readonly cycleAttemptNumber: number;
  readonly expiresAtMs: number;
  readonly nowMs: number;
  /** True for a request that cannot be built or signed: no retry will change that. */
  readonly unsendable: boolean;
}

/**
 * What follows an attempt: a success ends the delivery, a failure is retried after the policy's wait, and the debt
 * ends when the attempts or its time run out. Pure: `random` is a number from 0 up to 1.
 */
export function decideOutcome(
  attempt: AttemptRecord,
  standing: Standing,
  policy: RetryPolicy,
  random: number,
): Outcome {
  if (attempt.outcome === 'succeeded') return { state: 'succeeded' };
  if (standing.unsendable) return dead('unsendable');
  const delayMs = policy.delaysMs[standing.cycleAttemptNumber - 1];
  if (delayMs === undefined) return dead('exhausted');
  const retryInMs = Math.round(delayMs * (1 + policy.jitter * (2 * random - 1)));
  if (standing.nowMs + retryInMs > standing.expiresAtMs) return dead('expired');
  return { state: 'failed', retryInMs };
}

function dead(reason: DeadReason): Outcome {
  return { state: 'dead', reason };
}
