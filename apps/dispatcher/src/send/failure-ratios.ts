interface Window {
  startedAtMs: number;
  attempts: number;
  failures: number;
}

/** The ratio is looked at over windows of a minute, once there are enough attempts for one to mean anything. */
const WINDOW_MS = 60_000;
const ATTEMPTS_MIN = 20;
const ENDPOINTS_KEPT = 10_000;

/**
 * How many attempts of an endpoint failed lately, as this process saw it: counting successes in the database would be a
 * write a delivery. Kept only for endpoints that have a ratio.
 */
export class FailureRatios {
  readonly #windows = new Map<string, Window>();

  /** Counts one attempt, and says whether the endpoint's ratio is reached; then the count begins anew. */
  reached(endpointId: string, succeeded: boolean, ratio: number | null, nowMs: number): boolean {
    if (ratio === null) return false;
    const window = this.#windowOf(endpointId, nowMs);
    window.attempts += 1;
    if (!succeeded) window.failures += 1;
    if (succeeded || window.attempts < ATTEMPTS_MIN || window.failures < window.attempts * ratio)
      return false;
    this.#windows.delete(endpointId);
    return true;
  }

  #windowOf(endpointId: string, nowMs: number): Window {
    const known = this.#windows.get(endpointId);
    if (known !== undefined && nowMs - known.startedAtMs < WINDOW_MS) return known;
    const window = { startedAtMs: nowMs, attempts: 0, failures: 0 };
    this.#windows.delete(endpointId);
    this.#windows.set(endpointId, window);
    if (this.#windows.size > ENDPOINTS_KEPT) this.#windows.delete(this.#windows.keys().next().value!);
    return window;
  }
}
