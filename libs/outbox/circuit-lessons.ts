import type { EndpointRef, SettledAttempt } from './types.js';

/** When an endpoint's circuit opens, and for how long. */
export interface CircuitPolicy {
  /** Failures in a row that open it; 0 for an endpoint without a circuit. */
  readonly failures: number;
  /** Share of failed attempts in the last minute that opens it; null to look at failures in a row alone. */
  readonly failureRatio: number | null;
  /** How long it stays open before a probe. */
  readonly openMs: number;
}

/** What one attempt says about its endpoint; an attempt that says nothing (a lapsed lease) has none. */
export interface AttemptLesson {
  readonly succeeded: boolean;
  readonly policy: CircuitPolicy;
  /** The failure ratio was reached with this attempt. */
  readonly tripped: boolean;
  /** Milliseconds for which `Retry-After` holds the endpoint; null for not at all. */
  readonly holdMs: number | null;
  /** The receiver answered 410. */
  readonly gone: boolean;
  /** This attempt decides a half-open circuit. */
  readonly isProbe: boolean;
}

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
    failures: succeeded ? 0 : (before?.failures ?? 0) + 1,
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
