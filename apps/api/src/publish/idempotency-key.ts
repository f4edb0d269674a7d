import type { IncomingMessage } from 'node:http';
import { AppError } from '#runtime';

/** How an idempotency key looks. */
export const IDEMPOTENCY_KEY = /^[\x21-\x7e]{1,255}$/;

/** The text when it may be an idempotency key, else null. */
export function readIdempotencyKey(text: string | null): string | null {
  return text !== null && IDEMPOTENCY_KEY.test(text) ? text : null;
}

/** The Idempotency-Key of a request, null when it brings none; throws for a malformed one and for two of them. */
export function idempotencyKeyOf(request: IncomingMessage): string | null {
  const given = request.headersDistinct['idempotency-key'];
  if (given === undefined) return null;
  const key = given.length === 1 ? readIdempotencyKey(given[0]!) : null;
  if (key !== null) return key;
  throw new AppError(
    'invalid_idempotency_key',
    'Idempotency-Key is given once and has 1 to 255 visible ASCII characters.',
  );
}

/** Throws when a batch comes with the header: one key cannot stand for many events. */
export function refuseIdempotencyKey(request: IncomingMessage): void {
  if (request.headers['idempotency-key'] === undefined) return;
  throw new AppError('invalid_idempotency_key', 'In a batch each event brings its own idempotency_key.');
}
