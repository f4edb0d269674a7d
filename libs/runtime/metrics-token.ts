import { createHash, timingSafeEqual } from 'node:crypto';

/** True when no metrics token is set, or the Authorization header brings it as a bearer token. Constant-time. */
export function isMetricsAllowed(token: string | null, authorization: string | undefined): boolean {
  if (token === null) return true;
  return timingSafeEqual(digest(`Bearer ${token}`), digest(authorization ?? ''));
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
