import { AppError } from '#runtime';

/** What a number may be. */
export interface Bounds {
  readonly min: number;
  readonly max: number;
  readonly whole?: boolean;
}

/** Names the field of a body that was refused, as a path, and says in words that follow its name what it must be. */
export function refuseField(field: string, rule: string): AppError {
  return new AppError('validation_failed', `${field} ${rule}.`, { details: [{ field, reason: 'invalid' }] });
}

/** The fields of an object of a body; throws `unknown_field` for a name that is not among the known. */
export function readFields(
  value: unknown,
  field: string,
  known: readonly string[],
): Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw refuseField(field, 'must be an object');
  }
  const unknown = Object.keys(value).filter((name) => !known.includes(name));
  if (unknown.length === 0) return value as Record<string, unknown>;
  const details = unknown
    .slice(0, 20)
    .map((name) => ({ field: `${field}.${name.slice(0, 100)}`, reason: 'unknown' as const }));
  throw new AppError('unknown_field', `Not known here: ${details.map((each) => each.field).join(', ')}.`, {
    details,
  });
}

/** A number of a body within its bounds; throws `validation_failed` for anything else. */
export function readNumber(value: unknown, field: string, { min, max, whole = false }: Bounds): number {
  if (typeof value === 'number' && value >= min && value <= max && (!whole || Number.isInteger(value))) {
    return value;
  }
  throw refuseField(field, `must be a ${whole ? 'whole ' : ''}number from ${min} to ${max}`);
}

/** The same where null, or nothing, stands for the default. */
export function readOptionalNumber(value: unknown, field: string, bounds: Bounds): number | null {
  return value === undefined || value === null ? null : readNumber(value, field, bounds);
}
