import type { AttemptLesson, EndpointRef, SettledAttempt } from './types.js';

/** What a batch of attempts teaches about one endpoint. */
export interface CircuitLesson extends EndpointRef {
  /** Some attempt of the batch succeeded: what failed before it no longer counts. */
  readonly succeeded: boolean;
  /** Failures in a row at the end of the batch. */
  readonly failures: number;
  readonly threshold: number;
  readonly openMs: number;
  readonly tripped: boolean;
  readonly holdMs: number | null;
  readonly gone: boolean;
  /** The token of the claim that took the endpoint's probe, if the probe is in the batch, and how the probe went. */
  readonly probeToken: string | null;
  readonly probeSucceeded: boolean;
}

/** Adds up a batch, in the order in which its attempts ended; one lesson an endpoint, in the order of their keys. */
export function circuitLessons(settled: readonly SettledAttempt[]): readonly CircuitLesson[] {
  const lessons = new Map<string, CircuitLesson>();
  for (const item of settled) {
    if (item.lesson !== null)
      lessons.set(item.endpointId, add(lessons.get(item.endpointId), item, item.lesson));
  }
  return [...lessons.values()].toSorted((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1));
}

function add(before: CircuitLesson | undefined, item: SettledAttempt, lesson: AttemptLesson): CircuitLesson {
  const { succeeded, policy, tripped, holdMs, gone, isProbe } = lesson;
  return {
    tenantId: item.tenantId,
    endpointId: item.endpointId,
    succeeded: succeeded || before?.succeeded === true,
    // A receiver that says when to come back works: it is waited for, and nothing is counted against it.
    failures: succeeded ? 0 : (before?.failures ?? 0) + (holdMs === null ? 1 : 0),
    threshold: policy.failures,
    openMs: policy.openMs,
    tripped: tripped || before?.tripped === true,
    holdMs: Math.max(holdMs ?? 0, before?.holdMs ?? 0) || null,
    gone: gone || before?.gone === true,
    probeToken: isProbe ? item.claimToken : (before?.probeToken ?? null),
    probeSucceeded: isProbe ? succeeded : before?.probeSucceeded === true,
  };
}

function keyOf({ tenantId, endpointId }: EndpointRef): string {
  return tenantId + endpointId;
}
