import {
  countQueueBlocks,
  decideOutcome,
  expireDeliveries,
  findLapsedClaims,
  readRetryPolicy,
  type LapsedClaim,
  type RetryPolicy,
  type SettledAttempt,
} from '#outbox';
import type { Queryable } from '#runtime';

/** Blocks read in one step: 256 of 8 KiB, 2 MB, two milliseconds. All of a queue of 60,000 rows took 14 ms, twice each second. */
const BLOCKS_PER_STEP = 256;
/** A whole round takes at most this many steps, however large the queue has grown. */
const STEPS_PER_ROUND = 10;
const ROWS_PER_STEP = 1_000;

/** Where the walk over the queue's blocks stands. */
export interface ReapPlace {
  readonly block: number;
}

export interface ReapStep {
  readonly lapsed: readonly SettledAttempt[];
  /** Debts whose time was over; they are dead now. */
  readonly expired: number;
  readonly next: ReapPlace;
}

/**
 * Looks at the next stretch of the queue for claims whose lease ran out and settles each as an attempt
 * `lease_expired`: tried again after its backoff, or dead at its limit. Recording is fenced by the claim's token like
 * any other, so two reapers, or a reaper and a worker that comes back late, cannot both move a delivery. Debts in the
 * same stretch whose time is over end there and then, whatever holds them back.
 */
export async function reapStep(
  db: Queryable,
  place: ReapPlace,
  retry: RetryPolicy,
  leaseMs: number,
  random: () => number,
): Promise<ReapStep> {
  const blocks = await countQueueBlocks(db);
  const from = place.block < blocks ? place.block : 0;
  const until = from + Math.max(BLOCKS_PER_STEP, Math.ceil(blocks / STEPS_PER_ROUND));
  const lapsed = await findLapsedClaims(db, { from, until }, ROWS_PER_STEP);
  const expired = await expireDeliveries(db, { from, until }, ROWS_PER_STEP);
  // A full answer means that this stretch holds more: stay on it.
  const next = lapsed.length === ROWS_PER_STEP || expired === ROWS_PER_STEP ? from : until;
  const spread = spreadEvenly(lapsed.length, random);
  return {
    lapsed: lapsed.map((claim, index) =>
      settleLapsed(claim, leaseMs, { ...readRetryPolicy(claim.retry, retry), jitter: 1 }, spread[index]!),
    ),
    expired,
    next: { block: next },
  };
}

/**
 * One number in each of `count` equal parts of [0, 1), in random order. Claims that lapse together were in flight
 * together, and one of them may be what killed the worker: evenly apart over twice their wait, it meets few of the
 * others again. With the policy's own jitter the whole batch was sent again with it, and died with it at the limit.
 */
export function spreadEvenly(count: number, random: () => number): number[] {
  const parts = Array.from({ length: count }, (_, part) => ({
    order: random(),
    value: (part + random()) / count,
  }));
  return parts.toSorted((a, b) => a.order - b.order).map(({ value }) => value);
}

function settleLapsed(
  claim: LapsedClaim,
  leaseMs: number,
  retry: RetryPolicy,
  spread: number,
): SettledAttempt {
  const { tenantId, endpointId, eventId, deliveryId, claimToken, attemptNumber, endpointRevision } = claim;
  const attempt = {
    outcome: 'lease_expired',
    statusCode: null,
    errorKind: 'lease_expired',
    error:
      'The worker died or lost the database before it recorded an outcome; the request may have been made.',
    responseBody: null,
    // All that is known: it was claimed then, and its time was the lease's.
    startedAtMs: claim.leaseUntilMs - leaseMs,
    durationMs: leaseMs,
  } as const;
  const standing = {
    cycleAttemptNumber: claim.cycleAttemptNumber,
    expiresAtMs: claim.expiresAtMs,
    nowMs: claim.databaseNowMs,
    unsendable: false,
    retryAfterMs: null,
  };
  const outcome = decideOutcome(attempt, standing, retry, spread);
  return {
    tenantId,
    endpointId,
    eventId,
    deliveryId,
    claimToken,
    attemptNumber,
    endpointRevision,
    attempt,
    outcome,
    // A worker that died says nothing about the receiver.
    lesson: null,
  };
}
