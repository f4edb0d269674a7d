/** Tells the database's time in milliseconds, as far as one process can know it without asking. */
export type DatabaseClock = () => number;

/**
 * Counts on from a time the database gave. `askedAtMs` is the monotonic time just before the question was sent, so
 * that the clock can only run ahead of the database's, never behind: a lease looks shorter than it is, not longer.
 */
export function databaseClock(
  databaseNowMs: number,
  askedAtMs: number,
  monotonicMs: () => number,
): DatabaseClock {
  return () => databaseNowMs + (monotonicMs() - askedAtMs);
}
