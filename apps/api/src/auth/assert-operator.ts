import { createHash, timingSafeEqual } from 'node:crypto';
import { AppError } from '#runtime';
import { bearerOf } from './authenticate.js';

/**
 * Throws `authentication_required` or `invalid_operator_key` unless the header brings one of the operator's keys. Digests
 * are compared, each of them, in a time that says nothing. A tenant's key is one of those that are not valid here: it is
 * not looked up.
 */
export function assertOperator(header: string | undefined, digests: readonly Buffer[]): void {
  const given = createHash('sha256').update(bearerOf(header)).digest();
  const same = digests.map((digest) => timingSafeEqual(digest, given));
  if (!same.includes(true)) throw new AppError('invalid_operator_key');
}
