import { AppError, type Queryable } from '#runtime';
import { API_KEY_COLUMNS, toApiKey, type ApiKey, type ApiKeyRow } from './api-key.js';
import { findApiKey } from './find-api-key.js';

const REVOKE_API_KEY = `
update waybill.api_keys k
set revoked_at = now(), version = k.version + 1
where k.tenant_id = $1
  and k.id = $2
  and k.revoked_at is null
returning ${API_KEY_COLUMNS}
`;

/** Locked in one order, so that of two keys that revoke each other the second sees that it is the last. */
const LOCK_MANAGING_KEYS = `
select k.id
from waybill.api_keys k
where k.tenant_id = $1
  and k.scopes && array['keys', 'admin']
  and k.revoked_at is null
  and (k.expires_at is null or k.expires_at > now())
order by k.id
for update of k
`;

/**
 * Revokes a key; it is refused from the next request on. One that is revoked already stays as it is. Throws
 * `api_key_not_found`.
 */
export async function revokeApiKey(db: Queryable, tenantId: string, keyId: string): Promise<ApiKey> {
  const { rows } = await db.query<ApiKeyRow>({ text: REVOKE_API_KEY, values: [tenantId, keyId] });
  return rows[0] === undefined ? findApiKey(db, tenantId, keyId) : toApiKey(rows[0]);
}

/**
 * The same for a tenant's own request, which must leave a live key that can make another one: throws `last_managing_key`
 * otherwise. To be called in a transaction.
 */
export async function revokeOwnApiKey(tx: Queryable, tenantId: string, keyId: string): Promise<ApiKey> {
  const { rows } = await tx.query<{ id: string }>({ text: LOCK_MANAGING_KEYS, values: [tenantId] });
  if (rows.length === 1 && rows[0]!.id === keyId) throw new AppError('last_managing_key');
  return revokeApiKey(tx, tenantId, keyId);
}
