import type { IncomingMessage } from 'node:http';
import { AppError, type Queryable } from '#runtime';
import { authenticateKeys, type KeyHolder, type Scope } from '#tenants';
import { groupCalls, type Settled } from '../group-calls.js';
import { unknownField } from '../http/dto.pipe.js';

/** Tells whose key a request brings; throws when it brings none that is good now. */
export type Authenticate = (request: IncomingMessage) => Promise<KeyHolder>;

// A look-up takes a fraction of a millisecond, so two flights are never the limit; a group is as many as may come at once.
const LIMITS = { inputsMax: 256, bytesMax: Infinity, flightsMax: 2 };

/**
 * Looks up the keys of requests that come at the same time in one statement, which starts after the last of them came:
 * a request never sees a key as it was before the request. Nothing is kept for the next.
 */
export function createAuthenticate(db: Queryable, env: string): Authenticate {
  const lookUp = groupCalls(async (keyTexts: readonly string[]): Promise<Settled<KeyHolder>[]> => {
    const verdicts = await authenticateKeys(db, keyTexts, env);
    return verdicts.map((verdict) => (verdict instanceof AppError ? { error: verdict } : { value: verdict }));
  }, LIMITS);
  return async (request) => lookUp(bearerOf(request.headers.authorization));
}

/** Throws unless the key has the scope. */
export function requireScope({ scopes }: KeyHolder, scope: Scope): void {
  if (scopes.includes(scope) || scopes.includes('admin')) return;
  throw new AppError('insufficient_scope', `The API key lacks the scope ${scope}.`);
}

/** A parameter that nobody reads would silently be nothing: `POST /v1/events?not_before=…`. */
export function refuseQuery(query: object): void {
  const names = Object.keys(query);
  if (names.length > 0) throw unknownField(names);
}

/** The bearer token of an Authorization header; throws `authentication_required` when it brings none. */
export function bearerOf(header: string | undefined): string {
  const match = /^bearer(?: +(.*))?$/i.exec(header ?? '');
  if (match === null) throw new AppError('authentication_required');
  return match[1] ?? '';
}
