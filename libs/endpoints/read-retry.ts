import { readFields, readNumber, refuseField, type Bounds } from './read-field.js';

/** What ends a delivery early: nothing, or an answer that would be the same next time. */
export const RETRY_CHOICES = ['any', 'transient'] as const;

interface RetryManner {
  /** How far a wait is spread: by that part of it up and down, or `full`: evenly from nothing to all of it. */
  readonly jitter: number | 'full';
  readonly retry_on: (typeof RETRY_CHOICES)[number];
}

/** One wait for each retry. */
export interface RetrySchedule extends RetryManner {
  readonly schedule_seconds: readonly number[];
}

/** Waits that double from the initial one to the cap. */
export interface RetryBackoff extends RetryManner {
  readonly initial_seconds: number;
  readonly cap_seconds: number;
  readonly max_attempts: number;
}

/** When an endpoint's failed deliveries are tried again, as it is stored and shown: complete, waits in whole ms. */
export type RetryPolicy = RetrySchedule | RetryBackoff;

/** Policies by name; they are stored as what they stand for, so that a stored one never changes its meaning. */
export const RETRY_PRESETS: Readonly<Record<string, RetryPolicy | null>> = {
  default: null,
  outbox: { initial_seconds: 2, cap_seconds: 3_600, max_attempts: 16, jitter: 'full', retry_on: 'any' },
  form: { initial_seconds: 10, cap_seconds: 3_600, max_attempts: 5, jitter: 0, retry_on: 'transient' },
};

/** Waits in one schedule: it allows one attempt more. */
export const RETRY_WAITS_MAX = 50;

/** A wait below this would be a loop, one above it longer than anybody looks back. */
export const WAIT_SECONDS: Bounds = { min: 0.1, max: 30 * 86_400 };

/** How often one delivery may be tried. */
export const ATTEMPTS: Bounds = { min: 1, max: 100, whole: true };

const BACKOFF_FIELDS = ['initial_seconds', 'cap_seconds', 'max_attempts'];
const MANNER_FIELDS = ['jitter', 'retry_on'];
const JITTER_DEFAULT = 0.2;

/**
 * The retry policy to store for what a caller asked for: a preset, a schedule, or initial wait, cap and attempts. Null
 * is the platform's. Throws `validation_failed` or `unknown_field`, naming the field.
 */
export function readRetry(value: unknown): RetryPolicy | null {
  if (value === null) return null;
  const known = ['preset', 'schedule_seconds', ...BACKOFF_FIELDS, ...MANNER_FIELDS];
  const fields = readFields(value, 'retry', known);
  const forms = [['preset'], ['schedule_seconds'], BACKOFF_FIELDS];
  const [form, ...others] = forms.filter((names) => names.some((name) => Object.hasOwn(fields, name)));
  if (form === undefined || others.length > 0) {
    throw refuseField(
      'retry',
      `must have either preset, or schedule_seconds, or ${BACKOFF_FIELDS.join(', ')}`,
    );
  }
  if (form[0] === 'preset') return readPreset(fields);
  const manner = { jitter: readJitter(fields['jitter']), retry_on: readRetryOn(fields['retry_on']) };
  return form === BACKOFF_FIELDS
    ? { ...readBackoff(fields), ...manner }
    : { schedule_seconds: readSchedule(fields['schedule_seconds']), ...manner };
}

function readPreset(fields: Readonly<Record<string, unknown>>): RetryPolicy | null {
  if (Object.keys(fields).length > 1) throw refuseField('retry', 'must have no other field beside preset');
  const { preset } = fields;
  if (typeof preset !== 'string' || !Object.hasOwn(RETRY_PRESETS, preset)) {
    throw refuseField('retry.preset', `must be one of ${Object.keys(RETRY_PRESETS).join(', ')}`);
  }
  return RETRY_PRESETS[preset]!;
}

function readSchedule(value: unknown): readonly number[] {
  const field = 'retry.schedule_seconds';
  if (!Array.isArray(value) || value.length < 1 || value.length > RETRY_WAITS_MAX) {
    throw refuseField(field, `must be a list of 1 to ${RETRY_WAITS_MAX} waits`);
  }
  return value.map((wait: unknown, index) => readWait(wait, `${field}[${index}]`));
}

function readBackoff(fields: Readonly<Record<string, unknown>>): Omit<RetryBackoff, keyof RetryManner> {
  const initial = readWait(fields['initial_seconds'], 'retry.initial_seconds');
  const cap = readWait(fields['cap_seconds'], 'retry.cap_seconds');
  const attempts = readNumber(fields['max_attempts'], 'retry.max_attempts', ATTEMPTS);
  if (cap < initial) throw refuseField('retry.cap_seconds', 'must not be less than initial_seconds');
  return { initial_seconds: initial, cap_seconds: cap, max_attempts: attempts };
}

function readWait(value: unknown, field: string): number {
  return Math.round(readNumber(value, field, WAIT_SECONDS) * 1000) / 1000;
}

function readJitter(value: unknown): number | 'full' {
  if (value === undefined) return JITTER_DEFAULT;
  if (value === 'full' || (typeof value === 'number' && value >= 0 && value <= 1)) return value;
  throw refuseField('retry.jitter', 'must be "full" or a number from 0 to 1');
}

function readRetryOn(value: unknown): RetryManner['retry_on'] {
  if (value === undefined) return 'any';
  const choice = RETRY_CHOICES.find((name) => name === value);
  if (choice !== undefined) return choice;
  throw refuseField('retry.retry_on', `must be one of ${RETRY_CHOICES.join(', ')}`);
}
