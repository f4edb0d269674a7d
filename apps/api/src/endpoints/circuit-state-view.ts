import type { Circuit } from '#endpoints';

/** What is known of an endpoint's failures, as the API shows it. */
export function circuitStateView(circuit: Circuit) {
  return {
    state: circuit.state,
    consecutive_failures: circuit.consecutiveFailures,
    open_until: circuit.openUntil?.toISOString() ?? null,
    failing_since: circuit.failingSince?.toISOString() ?? null,
    held_until: circuit.heldUntil?.toISOString() ?? null,
  };
}
