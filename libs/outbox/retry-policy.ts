/** When a failed delivery is tried again, what is tried again at all, and when it is given up. */
export interface RetryPolicy {
  readonly waits: ScheduledWaits | ExponentialWaits;
  /** 0.2 spreads each wait evenly over ±20 %; `full` spreads it evenly from nothing to the whole wait. */
  readonly jitter: number | 'full';
  /** `transient` takes an answer such as 400 or 404 for the receiver's last word; `any` retries whatever is not a 2xx. */
  readonly retryOn: 'any' | 'transient';
}

/** The wait after the 1st, 2nd, … failure; one more failure than there are waits is the last. */
export interface ScheduledWaits {
  readonly kind: 'schedule';
  readonly delaysMs: readonly number[];
}

/** The wait doubles from `initialMs` up to `capMs`; the failure numbered `maxAttempts` is the last. */
export interface ExponentialWaits {
  readonly kind: 'exponential';
  readonly initialMs: number;
  readonly capMs: number;
  readonly maxAttempts: number;
}

/** No retry of an endpoint's own policy comes sooner or later than this, whoever wrote the policy. */
const WAIT_MIN_MS = 100;
const WAIT_MAX_MS = 30 * 86_400_000;
const WAITS_MAX = 50;
const ATTEMPTS_MAX = 100;

/** The wait after so many failures before any jitter; null when there is no further attempt. */
export function baseWaitMs({ waits }: RetryPolicy, failures: number): number | null {
  if (waits.kind === 'schedule') return waits.delaysMs[failures - 1] ?? null;
  if (failures >= waits.maxAttempts) return null;
  return Math.min(waits.initialMs * 2 ** Math.max(0, failures - 1), waits.capMs);
}

/** The wait after so many failures, in whole milliseconds; `random` is a number from 0 up to 1. */
export function retryWaitMs(policy: RetryPolicy, failures: number, random: number): number | null {
  const base = baseWaitMs(policy, failures);
  if (base === null) return null;
  const spread = policy.jitter === 'full' ? random : 1 + policy.jitter * (2 * random - 1);
  return Math.round(base * spread);
}

/**
 * An endpoint's own policy as it is stored (null for none), over the platform's. What the API would have refused may
 * still have been written by SQL: a wait is brought into 0.1 s … 30 days, and what cannot be read at all counts as
 * nothing, so that no stored policy makes a retry immediate, endless or never.
 */
export function readRetryPolicy(stored: unknown, platform: RetryPolicy): RetryPolicy {
  if (typeof stored !== 'object' || stored === null) return platform;
  const fields = stored as Record<string, unknown>;
  return {
    waits: readSchedule(fields['schedule_seconds']) ?? readExponential(fields) ?? platform.waits,
    jitter: readJitter(fields['jitter']) ?? platform.jitter,
    retryOn: fields['retry_on'] === 'transient' ? 'transient' : 'any',
  };
}

function readSchedule(seconds: unknown): ScheduledWaits | null {
  if (!Array.isArray(seconds) || seconds.length === 0 || !seconds.every(isFiniteNumber)) return null;
  return { kind: 'schedule', delaysMs: seconds.slice(0, WAITS_MAX).map(boundedWaitMs) };
}

function readExponential(fields: Record<string, unknown>): ExponentialWaits | null {
  const { initial_seconds: initial, cap_seconds: cap, max_attempts: attempts } = fields;
  if (!isFiniteNumber(initial) || !isFiniteNumber(cap) || !isFiniteNumber(attempts)) return null;
  return {
    kind: 'exponential',
    initialMs: boundedWaitMs(initial),
    capMs: boundedWaitMs(cap),
    maxAttempts: Math.min(Math.max(Math.trunc(attempts), 1), ATTEMPTS_MAX),
  };
}

function readJitter(jitter: unknown): number | 'full' | null {
  if (jitter === 'full') return jitter;
  return isFiniteNumber(jitter) && jitter >= 0 && jitter <= 1 ? jitter : null;
}

function boundedWaitMs(seconds: number): number {
  return Math.min(Math.max(seconds * 1000, WAIT_MIN_MS), WAIT_MAX_MS);
}

function isFiniteNumber(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value);
}
