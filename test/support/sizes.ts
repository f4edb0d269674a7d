/** True under `npm run test:full`: every size below is then the one that the claim is made for. */
export const FULL = process.env['WAYBILL_TEST_FULL'] === '1';

/** The only place where a test's size is chosen: [npm test, npm run test:full]. `npm test` has five minutes in all. */
export const SIZES = {
  /** Row 28: rows that are done, and rows that are due, behind one claim. */
  finishedRows: pick(50_000, 500_000),
  dueRows: pick(30_000, 300_000),
  /** For what seeds them: two minutes on two busy cores. */
  seedTimeoutMs: pick(60_000, 600_000),
  /** Row 46: rows behind an open circuit. Row 70: another tenant's backlog. */
  rowsBehindOpenCircuit: pick(10_000, 100_000),
  foreignBacklogRows: pick(10_000, 100_000),
  /** Row 25: events to receivers that answer in 2 s. */
  slowReceiverEvents: pick(200, 1_000),
  /** Row 92: rows of an export; one more is refused, whatever the size. */
  exportRows: pick(10_000, 10_000),
  /** H05: deliveries to a receiver that never answers. */
  hangingDeliveries: pick(400, 2_000),
  /** H15: rounds of six migrating processes. H20: rounds of fifty requests with one key. */
  migrationRounds: pick(2, 20),
  idempotencyRounds: pick(5, 200),
  /** H20 on each route that creates. */
  creationRounds: pick(2, 50),
  /** Producers killed in the middle of their transaction. */
  producerKills: pick(20, 1_000),
  fuzzRequests: pick(500, 20_000),
  /** Filters that are decided by the database and by the oracle. */
  filterCases: pick(5_000, 100_000),
  /** Model runs: sequences of commands against the real database. */
  modelRuns: pick(50, 200),
  /** Events published while the crash tests kill, cut and pause. */
  crashEvents: pick(100, 1_000),
} as const;

function pick(reduced: number, full: number): number {
  return FULL ? full : reduced;
}
