import { RECORD_MARGIN_MS, type Config } from '#runtime';
import { readFields, readOptionalNumber, refuseField, type Bounds } from './read-field.js';
import { readRetry, type RetryPolicy } from './read-retry.js';

/** How an endpoint wants to be delivered to, as it is stored. Null is the platform's default. */
export interface DeliveryPolicy {
  readonly retry: RetryPolicy | null;
  readonly maxAgeMs: number | null;
  readonly connectTimeoutMs: number | null;
  readonly attemptTimeoutMs: number | null;
  readonly ratePerSecond: number | null;
  readonly concurrency: number | null;
  /** Failures in a row that open the circuit; 0 when the endpoint has none. */
  readonly circuitFailures: number | null;
  readonly circuitFailureRatio: number | null;
  readonly circuitOpenMs: number | null;
}

/** The fields of a body that make a delivery policy, whatever a client put into them. */
export interface DeliveryPolicyInput {
  readonly retry?: unknown;
  readonly max_age_seconds?: unknown;
  readonly timeout?: unknown;
  readonly rate_per_second?: unknown;
  readonly concurrency?: unknown;
  readonly circuit?: unknown;
}

/** What a policy's timeouts must fit. */
export type TimeoutLimits = Pick<Config, 'connectTimeoutMs' | 'attemptTimeoutMs' | 'leaseMs'>;

/** What the numbers of a policy may be, by their names in a body. */
export const POLICY_BOUNDS = {
  max_age_seconds: { min: 1, max: 90 * 86_400 },
  connect_ms: { min: 50, max: 60_000, whole: true },
  total_ms: { min: 100, max: 300_000, whole: true },
  rate_per_second: { min: 0.001, max: 10_000 },
  concurrency: { min: 1, max: 2_048, whole: true },
  failures: { min: 1, max: 1_000, whole: true },
  failure_ratio: { min: 0.01, max: 1 },
  open_seconds: { min: 0.1, max: 3_600 },
} satisfies Record<string, Bounds>;

/**
 * The part of a delivery policy that a body changes: a field it leaves out is not in it, null puts the default back.
 * Throws `validation_failed` or `unknown_field`, naming the field.
 */
export function readDeliveryPolicy(
  input: DeliveryPolicyInput,
  limits: TimeoutLimits,
): Partial<DeliveryPolicy> {
  return {
    ...part(input.retry, (value) => ({ retry: readRetry(value) })),
    ...part(input.max_age_seconds, (value) => ({
      maxAgeMs: toMs(readOptionalNumber(value, 'max_age_seconds', POLICY_BOUNDS.max_age_seconds)),
    })),
    ...part(input.timeout, (value) => readTimeout(value, limits)),
    ...part(input.rate_per_second, (value) => ({
      ratePerSecond: readOptionalNumber(value, 'rate_per_second', POLICY_BOUNDS.rate_per_second),
    })),
    ...part(input.concurrency, (value) => ({
      concurrency: readOptionalNumber(value, 'concurrency', POLICY_BOUNDS.concurrency),
    })),
    ...part(input.circuit, readCircuitPolicy),
  };
}

function part<Part extends object>(value: unknown, read: (value: unknown) => Part): Partial<Part> {
  return value === undefined ? {} : read(value);
}

function readTimeout(
  value: unknown,
  limits: TimeoutLimits,
): Pick<DeliveryPolicy, 'connectTimeoutMs' | 'attemptTimeoutMs'> {
  if (value === null) return { connectTimeoutMs: null, attemptTimeoutMs: null };
  const fields = readFields(value, 'timeout', ['connect_ms', 'total_ms']);
  const connect = readOptionalNumber(fields['connect_ms'], 'timeout.connect_ms', POLICY_BOUNDS.connect_ms);
  const total = readOptionalNumber(fields['total_ms'], 'timeout.total_ms', {
    ...POLICY_BOUNDS.total_ms,
    // A longer attempt would lose its lease, and be made again, before its outcome is recorded.
    max: Math.min(POLICY_BOUNDS.total_ms.max, limits.leaseMs - RECORD_MARGIN_MS),
  });
  if (connect !== null && connect > (total ?? limits.attemptTimeoutMs)) {
    throw refuseField('timeout.connect_ms', `must not exceed total_ms (${total ?? limits.attemptTimeoutMs})`);
  }
  return { connectTimeoutMs: connect, attemptTimeoutMs: total };
}

function readCircuitPolicy(
  value: unknown,
): Pick<DeliveryPolicy, 'circuitFailures' | 'circuitFailureRatio' | 'circuitOpenMs'> {
  if (value === null || value === 'off') {
    const circuitFailures = value === 'off' ? 0 : null;
    return { circuitFailures, circuitFailureRatio: null, circuitOpenMs: null };
  }
  if (typeof value === 'string') throw refuseField('circuit', 'must be an object, "off" or null');
  const fields = readFields(value, 'circuit', ['failures', 'failure_ratio', 'open_seconds']);
  return {
    circuitFailures: readOptionalNumber(fields['failures'], 'circuit.failures', POLICY_BOUNDS.failures),
    circuitFailureRatio: readOptionalNumber(
      fields['failure_ratio'],
      'circuit.failure_ratio',
      POLICY_BOUNDS.failure_ratio,
    ),
    circuitOpenMs: toMs(
      readOptionalNumber(fields['open_seconds'], 'circuit.open_seconds', POLICY_BOUNDS.open_seconds),
    ),
  };
}

function toMs(seconds: number | null): number | null {
  return seconds === null ? null : Math.round(seconds * 1000);
}
