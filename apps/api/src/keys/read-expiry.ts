import { AppError } from '#runtime';
import { readTime } from '../http/read-time.js';

const LAST = Date.UTC(9999, 11, 31);

/** Reads `expires_at`; none for null. Throws `validation_failed` for no time. That it is to come, the database says. */
export function readExpiry(text: string | null | undefined): Date | null {
  if (text === undefined || text === null) return null;
  const time = readTime(text);
  if (time !== null && time.getTime() < LAST) return time;
  throw new AppError(
    'validation_failed',
    'expires_at must be a time by RFC 3339, such as 2027-01-31T12:00:00Z.',
    {
      details: [{ field: 'expires_at', reason: 'invalid' }],
    },
  );
}
