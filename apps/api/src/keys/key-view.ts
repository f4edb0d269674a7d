import { formatId } from '#runtime';
import type { ApiKey } from '#tenants';

/** An API key as the API shows it; never with its text. */
export function keyView(key: ApiKey) {
  return {
    id: formatId('api_key', key.id),
    name: key.name,
    scopes: key.scopes,
    status: key.status,
    version: key.version,
    created_at: key.createdAt.toISOString(),
    expires_at: key.expiresAt?.toISOString() ?? null,
    revoked_at: key.revokedAt?.toISOString() ?? null,
    last_used_at: key.lastUsedAt?.toISOString() ?? null,
  };
}
