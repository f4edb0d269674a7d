import type { DeliveryPolicy } from '#endpoints';

/** A delivery policy in the form in which it is also written; null is the platform's default. */
export function deliveryPolicyView(policy: DeliveryPolicy) {
  return {
    retry: policy.retry,
    max_age_seconds: toSeconds(policy.maxAgeMs),
    timeout: timeoutView(policy),
    rate_per_second: policy.ratePerSecond,
    concurrency: policy.concurrency,
    circuit: circuitView(policy),
  };
}

function timeoutView({ connectTimeoutMs, attemptTimeoutMs }: DeliveryPolicy) {
  if (connectTimeoutMs === null && attemptTimeoutMs === null) return null;
  return { connect_ms: connectTimeoutMs, total_ms: attemptTimeoutMs };
}

function circuitView({ circuitFailures, circuitFailureRatio, circuitOpenMs }: DeliveryPolicy) {
  if (circuitFailures === 0) return 'off' as const;
  if (circuitFailures === null && circuitFailureRatio === null && circuitOpenMs === null) return null;
  return {
    failures: circuitFailures,
    failure_ratio: circuitFailureRatio,
    open_seconds: toSeconds(circuitOpenMs),
  };
}

function toSeconds(ms: number | null): number | null {
  return ms === null ? null : ms / 1000;
}
