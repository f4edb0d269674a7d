import { AppError } from '#runtime';

/** What an API key may be allowed to do; `admin` allows everything. */
export const SCOPES = [
  'events:read',
  'events:write',
  'endpoints:read',
  'endpoints:write',
  'deliveries:read',
  'deliveries:write',
  'consumers',
  'keys',
  'admin',
] as const;

/** One entry of an API key's list of permissions. */
export type Scope = (typeof SCOPES)[number];

/** Whether the text is a scope of ours. */
export function isScope(text: string): text is Scope {
  return (SCOPES as readonly string[]).includes(text);
}

/** Reads the scopes of a key, each once; throws `validation_failed` for none and for one that is not known. */
export function readScopes(texts: readonly string[]): readonly Scope[] {
  const unknown = texts.filter((text) => !isScope(text));
  if (texts.length > 0 && unknown.length === 0) return [...new Set(texts.filter(isScope))];
  const shown = unknown.slice(0, 20).map((text) => text.slice(0, 100));
  const named =
    shown.length === 0 ? '' : `: unknown scope ${shown.join(', ')}, not one of ${SCOPES.join(', ')}`;
  throw new AppError('validation_failed', `A key has at least one scope, and known scopes only${named}.`, {
    details: [{ field: 'scopes', reason: texts.length === 0 ? 'missing' : 'invalid' }],
  });
}

/** Throws `insufficient_scope` when a key with the scopes `held` may not give others these, having fewer itself. */
export function assertMayGive(held: readonly Scope[], scopes: readonly Scope[]): void {
  if (held.includes('admin')) return;
  const missing = scopes.filter((scope) => !held.includes(scope));
  if (missing.length === 0) return;
  throw new AppError('insufficient_scope', `A key gives no scope that it lacks: ${missing.join(', ')}.`);
}
