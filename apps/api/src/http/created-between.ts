import { AppError } from '#runtime';
import { readTime } from './read-time.js';

/** The exclusive bounds of a list by creation time; throws `validation_failed` for no time, or a range that is empty. */
export function createdBetween(query: {
  readonly created_after?: string;
  readonly created_before?: string;
}): {
  createdAfter: Date | null;
  createdBefore: Date | null;
} {
  const createdAfter = bound('created_after', query.created_after);
  const createdBefore = bound('created_before', query.created_before);
  if (createdAfter !== null && createdBefore !== null && createdAfter >= createdBefore) {
    throw refused('created_before', 'created_before must be later than created_after.');
  }
  return { createdAfter, createdBefore };
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
