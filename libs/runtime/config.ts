import { AppError } from './app-error.js';
import { readKeyEnv, readOperatorKeys } from './read-credentials.js';
import { readEncryptionKeys, type EncryptionKey } from './read-encryption-keys.js';
import type { Setting } from './settings.js';

/** Everything a Waybill process reads from its environment, checked once at start. */
export interface Config {
  readonly databaseUrl: string;
  /** Migrations and LISTEN go here when the other URL leads through a transaction pooler. */
  readonly directDatabaseUrl: string;
  /** Newest first; none where endpoint secrets are neither written nor read. */
  readonly encryptionKeys: readonly EncryptionKey[];
  readonly host: string;
  readonly apiPort: number;
  readonly dispatcherPort: number;
  readonly metricsToken: string | null;
  /** Which installation this is, as its API keys say. */
  readonly keyEnv: string;
  /** SHA-256 of each key that may manage tenants; none for an api without those routes. */
  readonly operatorKeyDigests: readonly Buffer[];
  readonly egressAllow: readonly string[];
  readonly egressDeny: readonly string[];
  readonly allowHttp: boolean;
  readonly connectTimeoutMs: number;
  readonly attemptTimeoutMs: number;
  readonly leaseMs: number;
  readonly graceMs: number;
  readonly pollMs: number;
  readonly concurrency: number;
  readonly endpointConcurrency: number;
  readonly tenantConcurrency: number;
  readonly slowConcurrency: number;
  readonly retryDelaysMs: readonly number[];
  readonly retryJitter: number;
  readonly circuitFailures: number;
  readonly circuitOpenMs: number;
  readonly disableAfterMs: number;
  readonly maxAgeMs: number;
  readonly eventBytesMax: number;
  readonly batchBytesMax: number;
  readonly batchEventsMax: number;
  readonly logLevel: string;
}

/** Claim, send and record must fit into a lease: what it has beyond the deadline of an attempt, half of it for each. */
export const RECORD_MARGIN_MS = 2_000;

const HOUR_S = 3600;
const DEFAULT_RETRY_SECONDS = [
  5,
  300,
  1800,
  2 * HOUR_S,
  5 * HOUR_S,
  10 * HOUR_S,
  14 * HOUR_S,
  20 * HOUR_S,
  24 * HOUR_S,
];

type Environment = Readonly<Partial<Record<Setting, string>>>;

/**
 * Reads the settings of docs/reference/configuration.md. Throws one `invalid_configuration` that lists every
 * fault at once, so that nobody mends them one start at a time.
 */
export function readConfig(env: Environment): Config {
  const faults: string[] = [];
  const read = reader(env, faults);
  const databaseUrl = read.url('DATABASE_URL');
  const concurrency = read.integer('WAYBILL_CONCURRENCY', 512, 1, 1_024);
  const config: Config = {
    databaseUrl,
    directDatabaseUrl: env['WAYBILL_DIRECT_DATABASE_URL']
      ? read.url('WAYBILL_DIRECT_DATABASE_URL')
      : databaseUrl,
    encryptionKeys: readEncryptionKeys(
      { inline: env['WAYBILL_ENCRYPTION_KEY'], file: env['WAYBILL_ENCRYPTION_KEY_FILE'] },
      faults,
    ),
    host: env['WAYBILL_HOST'] ?? '127.0.0.1',
    apiPort: read.integer('WAYBILL_PORT', 8420, 0, 65_535),
    dispatcherPort: read.integer('WAYBILL_DISPATCHER_PORT', 8421, 0, 65_535),
    metricsToken: env['WAYBILL_METRICS_TOKEN'] || null,
    keyEnv: readKeyEnv(env['WAYBILL_ENV'], faults),
    operatorKeyDigests: readOperatorKeys(env['WAYBILL_OPERATOR_KEY'], faults),
    egressAllow: read.list('WAYBILL_EGRESS_ALLOW'),
    egressDeny: read.list('WAYBILL_EGRESS_DENY'),
    allowHttp: read.flag('WAYBILL_ALLOW_HTTP', false),
    connectTimeoutMs: read.integer('WAYBILL_CONNECT_TIMEOUT_MS', 5_000, 50, 60_000),
    attemptTimeoutMs: read.integer('WAYBILL_ATTEMPT_TIMEOUT_MS', 15_000, 100, 300_000),
    leaseMs: read.integer('WAYBILL_LEASE_MS', 60_000, 500, 3_600_000),
    graceMs: read.integer('WAYBILL_GRACE_MS', 20_000, 0, 600_000),
    pollMs: read.integer('WAYBILL_POLL_MS', 1_000, 10, 60_000),
    concurrency,
    endpointConcurrency: read.integer('WAYBILL_ENDPOINT_CONCURRENCY', 64, 1, 2_048),
    // A tenant's hanging receivers must leave room for everybody else's.
    tenantConcurrency: read.integer('WAYBILL_TENANT_CONCURRENCY', Math.ceil(concurrency * 0.75), 1, 2_048),
    slowConcurrency: read.integer('WAYBILL_SLOW_CONCURRENCY', 1_024, 0, 1_024),
    retryDelaysMs: read.seconds('WAYBILL_RETRY_SCHEDULE', DEFAULT_RETRY_SECONDS),
    retryJitter: read.decimal('WAYBILL_RETRY_JITTER', 0.2, 0, 1),
    circuitFailures: read.integer('WAYBILL_CIRCUIT_FAILURES', 5, 0, 1_000),
    circuitOpenMs: read.integer('WAYBILL_CIRCUIT_OPEN_MS', 30_000, 100, 3_600_000),
    disableAfterMs: read.integer('WAYBILL_DISABLE_AFTER_HOURS', 5 * 24, 1, 90 * 24) * HOUR_S * 1000,
    maxAgeMs: read.integer('WAYBILL_MAX_AGE_HOURS', 14 * 24, 1, 90 * 24) * HOUR_S * 1000,
    eventBytesMax: read.integer('WAYBILL_EVENT_BYTES_MAX', 262_144, 1, 16_777_216),
    batchBytesMax: read.integer('WAYBILL_BATCH_BYTES_MAX', 8_388_608, 1, 67_108_864),
    batchEventsMax: read.integer('WAYBILL_BATCH_EVENTS_MAX', 1_000, 1, 10_000),
    logLevel: read.oneOf('WAYBILL_LOG_LEVEL', 'info', ['trace', 'debug', 'info', 'warn', 'error', 'silent']),
  };
  if (config.leaseMs < config.attemptTimeoutMs + RECORD_MARGIN_MS) {
    faults.push(
      `WAYBILL_LEASE_MS (${config.leaseMs}) must be at least WAYBILL_ATTEMPT_TIMEOUT_MS (${config.attemptTimeoutMs}) ` +
        `plus ${RECORD_MARGIN_MS} ms to record the outcome: a shorter lease sends a slow request twice`,
    );
  }
  if (config.connectTimeoutMs > config.attemptTimeoutMs) {
    faults.push('WAYBILL_CONNECT_TIMEOUT_MS must not exceed WAYBILL_ATTEMPT_TIMEOUT_MS');
  }
  if (faults.length > 0) {
    throw new AppError(
      'invalid_configuration',
      `${faults.length} setting(s) refused:\n  - ${faults.join('\n  - ')}`,
    );
  }
  return config;
}

/** Whether a text is the URL of a PostgreSQL by its looks. */
export function isDatabaseUrl(text: string): boolean {
  return /^postgres(ql)?:\/\//.test(text);
}

function reader(env: Environment, faults: string[]) {
  const decimal = (name: Setting, fallback: number, min: number, max: number): number => {
    const text = env[name];
    if (text === undefined || text === '') return fallback;
    const value = Number(text);
    if (/^\d+(\.\d+)?$/.test(text) && value >= min && value <= max) return value;
    faults.push(`${name} must be a number from ${min} to ${max}, not "${text}"`);
    return fallback;
  };
  return {
    decimal,
    integer(name: Setting, fallback: number, min: number, max: number): number {
      const value = decimal(name, fallback, min, max);
      if (Number.isInteger(value)) return value;
      faults.push(`${name} must be a whole number, not "${env[name]}"`);
      return fallback;
    },
    url(name: Setting): string {
      const text = env[name] ?? '';
      if (isDatabaseUrl(text)) return text;
      faults.push(`${name} must be a postgresql:// URL${text === '' ? '; it is not set' : ''}`);
      return text;
    },
    list(name: Setting): readonly string[] {
      return (env[name] ?? '')
        .split(',')
        .map((entry) => entry.trim())
        .filter((entry) => entry !== '');
    },
    flag(name: Setting, fallback: boolean): boolean {
      const text = env[name];
      if (text === undefined || text === '') return fallback;
      if (text === 'true' || text === 'false') return text === 'true';
      faults.push(`${name} must be true or false, not "${text}"`);
      return fallback;
    },
    oneOf(name: Setting, fallback: string, values: readonly string[]): string {
      const text = env[name] || fallback;
      if (values.includes(text)) return text;
      faults.push(`${name} must be one of ${values.join(', ')}, not "${text}"`);
      return fallback;
    },
    seconds(name: Setting, fallback: readonly number[]): readonly number[] {
      const text = env[name];
      const parts =
        text === undefined || text === '' ? fallback.map(String) : text.split(',').map((part) => part.trim());
      const values = parts.map(Number);
      if (
        parts.length <= 50 &&
        parts.every((part) => /^\d+(\.\d+)?$/.test(part)) &&
        values.every((value) => value <= 30 * 24 * HOUR_S)
      ) {
        return values.map((value) => Math.round(value * 1000));
      }
      faults.push(
        `${name} must be 1 to 50 waits in seconds, each at most 30 days, separated by commas, not "${text}"`,
      );
      return fallback.map((value) => value * 1000);
    },
  };
}
