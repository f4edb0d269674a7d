import { AppError } from '#runtime';
import { readTime } from './read-time.js';

/** The exclusive bounds of a list by one of its times; null is no bound. */
export interface TimeBounds {
  readonly after: Date | null;
  readonly before: Date | null;
}

/**
 * Reads `<name>_after` and `<name>_before` of a query; throws `validation_failed` for what is no time, and for a range in
 * which none can be.
 */
export function betweenTimes<Name extends string>(
  name: Name,
  query: { readonly [Bound in `${Name}_after` | `${Name}_before`]?: string },
): TimeBounds {
  const after = bound(`${name}_after`, query[`${name}_after`]);
  const before = bound(`${name}_before`, query[`${name}_before`]);
  if (after !== null && before !== null && after >= before) {
    throw refused(`${name}_before`, `${name}_before must be later than ${name}_after.`);
  }
  return { after, before };
}

/** The bounds of a list by creation time. */
export function createdBetween(query: {
  readonly created_after?: string;
  readonly created_before?: string;
}): {
  createdAfter: Date | null;
  createdBefore: Date | null;
} {
  const { after, before } = betweenTimes('created', query);
  return { createdAfter: after, createdBefore: before };
}

function bound(field: string, text: string | undefined): Date | null {
  if (text === undefined) return null;
  return readTime(text) ?? refuse(field);
}

function refuse(field: string): never {
  throw refused(field, `${field} must be a time by RFC 3339, such as 2026-01-31T12:00:00Z.`);
}

function refused(field: string, message: string): AppError {
  return new AppError('validation_failed', message, { details: [{ field, reason: 'invalid' }] });
}
