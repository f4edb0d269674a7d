import type { Request } from 'express';
import { AppError } from '#runtime';

const KEY = /^[\x21-\x7e]{1,255}$/;

/** The text when it may be an idempotency key, else null. */
export function readIdempotencyKey(text: string | null): string | null {
  return text !== null && KEY.test(text) ? text : null;
}

/** The Idempotency-Key of a request, null when it brings none; throws for a malformed one and for two of them. */
export function idempotencyKeyOf(request: Request): string | null {
  const given = request.headersDistinct['idempotency-key'];
  if (given === undefined) return null;
  const key = given.length === 1 ? readIdempotencyKey(given[0]!) : null;
  if (key !== null) return key;
  throw new AppError(
    'invalid_idempotency_key',
    'Idempotency-Key is given once and has 1 to 255 visible ASCII characters.',
  );
}
