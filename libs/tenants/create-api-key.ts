import { AppError, newId, type Queryable, transactionTimeMs } from '#runtime';
import { toApiKey, type ApiKey, type ApiKeyRow } from './api-key.js';
import { assertName } from './assert-name.js';
import { KEY_ENV_DEFAULT, digestKeyText, formatKeyText } from './key-text.js';
import { readScopes } from './scopes.js';

export interface NewApiKey {
  readonly name: string;
  readonly scopes: readonly string[];
  /** Null for a key that ends only when it is revoked. */
  readonly expiresAt?: Date | null;
}

/** A key that was just made: the text is here and nowhere else. */
export interface CreatedApiKey extends ApiKey {
  readonly key: string;
}

/** The database's clock says whether a time is still to come. */
const CREATE_API_KEY = `
with asked as (
  select exists (select from waybill.tenants t where t.id = $1 and t.deleted_at is null) as has_tenant,
    coalesce($6::timestamptz > now(), true) as in_time
),
made as (
  insert into waybill.api_keys (tenant_id, id, name, secret_digest, scopes, created_at, expires_at)
  select $1, $2, $3, $4, $5::text[], now(), $6
  from asked
  where has_tenant and in_time
  returning id, name, scopes, created_at, expires_at
)
select a.has_tenant, a.in_time, m.id, m.name, m.scopes, m.created_at, m.expires_at, 1 as version, 'live' as status,
  null::timestamptz as revoked_at, null::timestamptz as last_used_at
from asked a
left join made m on true
`;

/**
 * Makes a key for a tenant. Throws `validation_failed` for a name, scopes or an end that cannot be, and
 * `tenant_not_found`.
 */
export async function createApiKey(
  db: Queryable,
  tenantId: string,
  { name, scopes, expiresAt = null }: NewApiKey,
  env: string = KEY_ENV_DEFAULT,
): Promise<CreatedApiKey> {
  assertName(name);
  const id = newId(await transactionTimeMs(db));
  const key = formatKeyText(id, env);
  const { rows } = await db.query<ApiKeyRow & { has_tenant: boolean; in_time: boolean }>({
    text: CREATE_API_KEY,
    values: [tenantId, id, name, digestKeyText(key), readScopes(scopes), expiresAt],
  });
  const row = rows[0]!;
  if (!row.has_tenant) throw new AppError('tenant_not_found');
  if (!row.in_time) {
    throw new AppError('validation_failed', 'A key cannot end before it is made.', {
      details: [{ field: 'expires_at', reason: 'invalid' }],
    });
  }
  return { ...toApiKey(row), key };
}
