/** Every environment variable that a Waybill process reads as its configuration; docs/reference/configuration.md explains each. */
export const SETTINGS = [
  'DATABASE_URL',
  'WAYBILL_DIRECT_DATABASE_URL',
  'WAYBILL_HOST',
  'WAYBILL_PORT',
  'WAYBILL_DISPATCHER_PORT',
  'WAYBILL_METRICS_TOKEN',
  'WAYBILL_OPERATOR_KEY',
  'WAYBILL_ENV',
  'WAYBILL_ENCRYPTION_KEY',
  'WAYBILL_ENCRYPTION_KEY_FILE',
  'WAYBILL_LOG_LEVEL',
  'WAYBILL_EVENT_BYTES_MAX',
  'WAYBILL_BATCH_BYTES_MAX',
  'WAYBILL_BATCH_EVENTS_MAX',
  'WAYBILL_CONCURRENCY',
  'WAYBILL_SLOW_CONCURRENCY',
  'WAYBILL_ENDPOINT_CONCURRENCY',
  'WAYBILL_TENANT_CONCURRENCY',
  'WAYBILL_CONNECT_TIMEOUT_MS',
  'WAYBILL_ATTEMPT_TIMEOUT_MS',
  'WAYBILL_LEASE_MS',
  'WAYBILL_GRACE_MS',
  'WAYBILL_POLL_MS',
  'WAYBILL_RETRY_SCHEDULE',
  'WAYBILL_RETRY_JITTER',
  'WAYBILL_CIRCUIT_FAILURES',
  'WAYBILL_CIRCUIT_OPEN_MS',
  'WAYBILL_DISABLE_AFTER_HOURS',
  'WAYBILL_MAX_AGE_HOURS',
  'WAYBILL_EGRESS_ALLOW',
  'WAYBILL_EGRESS_DENY',
  'WAYBILL_ALLOW_HTTP',
] as const;

/** What only `npm start`, `npm run receiver` and the command line read, and hand on to what they start. */
export const LAUNCH_SETTINGS = ['WAYBILL_HOME', 'WAYBILL_KEY'] as const;

/** The name of a setting: what is read under another one does not compile. */
export type Setting = (typeof SETTINGS)[number];

/** A variable that looks like a setting of ours and is none, with the one it was probably meant to be. */
export interface UnknownSetting {
  readonly name: string;
  readonly nearest: string | null;
}

const KNOWN: readonly string[] = [...SETTINGS, ...LAUNCH_SETTINGS];

/** Kubernetes puts these into every container beside a service named waybill; the tests have their own prefix. */
const FOREIGN =
  /^WAYBILL_(?:TEST_|(?:[A-Z0-9_]+_)?SERVICE_(?:HOST|PORT)|(?:[A-Z0-9_]+_)?PORT_\d+_(?:TCP|UDP))/;

/** More edits than this make another name, not a misspelt one. */
const EDITS_MAX = 4;

/**
 * The variables of an environment that begin like ours and that nobody reads: they would silently be nothing. They are no
 * reason not to start, since the environment is not ours alone, and an older release runs beside a newer one's settings.
 */
export function unknownSettings(env: Readonly<Record<string, string | undefined>>): UnknownSetting[] {
  return Object.keys(env)
    .filter((name) => /^WAYBILL_/i.test(name) && !KNOWN.includes(name) && !FOREIGN.test(name))
    .toSorted()
    .map((name) => ({ name, nearest: nearestOf(name.toUpperCase()) }));
}

function nearestOf(name: string): string | null {
  const [best] = KNOWN.map((known) => ({ known, edits: editsBetween(name, known) })).toSorted(
    (one, other) => one.edits - other.edits,
  );
  return best !== undefined && best.edits <= EDITS_MAX ? best.known : null;
}

/** How many letters are to be put in, taken out or changed to make one text of the other (Levenshtein). */
function editsBetween(one: string, other: string): number {
  let row = Array.from({ length: other.length + 1 }, (_, index) => index);
  for (const [index, letter] of one.split('').entries()) {
    const next = [index + 1];
    for (const [place, wanted] of other.split('').entries()) {
      next.push(Math.min(row[place]! + (letter === wanted ? 0 : 1), row[place + 1]! + 1, next[place]! + 1));
    }
    row = next;
  }
  return row.at(-1)!;
}
