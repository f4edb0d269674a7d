/** A receiver may hold its deliveries back for so long and no longer (ruling: an hour). */
export const RETRY_AFTER_MAX_MS = 3_600_000;

const SECONDS = /^\d+$/;
/** RFC 9110, 5.6.7: the one date form that senders may still generate. Date.parse alone takes far more than dates. */
const IMF_FIXDATE =
  /^(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d{2} (?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) \d{4} \d{2}:\d{2}:\d{2} GMT$/;

/**
 * How long a `Retry-After` asks to wait: milliseconds from 1 to an hour, or null when it says nothing usable, is over
 * already, or is more than one header. RFC 9110, 10.2.3: seconds as digits, or an HTTP date.
 */
export function parseRetryAfter(text: string | null, nowMs: number): number | null {
  const value = text?.trim() ?? '';
  // Four hundred digits are a number still, if not a finite one.
  if (SECONDS.test(value)) return bounded(Number(value) * 1000);
  if (IMF_FIXDATE.test(value)) return bounded(Date.parse(value) - nowMs);
  return null;
}

function bounded(waitMs: number): number | null {
  return waitMs > 0 ? Math.min(waitMs, RETRY_AFTER_MAX_MS) : null;
}
