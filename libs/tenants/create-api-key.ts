import { AppError, newId, sqlState } from '#runtime';
import { ApiKey } from './api-key.entity.js';
import { assertName, type Repositories } from './create-tenant.js';
import { digestKeyText, formatKeyText } from './key-text.js';
import { isScope, SCOPES } from './scopes.js';

export interface NewApiKey {
  readonly name: string;
  readonly scopes: readonly string[];
  readonly expiresAt?: Date | null;
}

const FOREIGN_KEY_VIOLATION = '23503';

/** Makes a key for a tenant. The key is in this answer and nowhere else: only its digest is stored. */
export async function createApiKey(
  source: Repositories,
  tenantId: string,
  { name, scopes, expiresAt = null }: NewApiKey,
): Promise<{ id: string; key: string }> {
  assertName(name);
  const unknown = scopes.filter((scope) => !isScope(scope));
  if (scopes.length === 0 || unknown.length > 0) {
    const named =
      unknown.length === 0 ? '' : `: unknown scope ${unknown.join(', ')}, not one of ${SCOPES.join(', ')}`;
    throw new AppError('validation_failed', `A key has at least one scope, and known scopes only${named}.`, {
      details: [{ field: 'scopes', reason: scopes.length === 0 ? 'missing' : 'invalid' }],
    });
  }
  const id = newId();
  const key = formatKeyText(id);
  try {
    await source.getRepository(ApiKey).insert({
      tenantId,
      id,
      name,
      secretDigest: digestKeyText(key),
      scopes: [...new Set(scopes)],
      createdAt: () => 'now()',
      expiresAt,
    });
  } catch (error) {
    if (sqlState(error) === FOREIGN_KEY_VIOLATION)
      throw new AppError('tenant_not_found', undefined, { cause: error });
    throw error;
  }
  return { id, key };
}
