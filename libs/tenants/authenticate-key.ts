import { timingSafeEqual } from 'node:crypto';
import { AppError, type Queryable } from '#runtime';
import { digestKeyText, readKeyText } from './key-text.js';
import type { Scope } from './scopes.js';

/** Who is asking, as a valid key says. */
export interface KeyHolder {
  readonly tenantId: string;
  readonly keyId: string;
  readonly scopes: readonly Scope[];
}

const READ_KEY = `
select k.tenant_id, k.secret_digest, k.scopes, t.suspended_at is not null as suspended
from waybill.api_keys k
join waybill.tenants t on t.id = k.tenant_id
where k.id = $1
  and k.revoked_at is null
  and (k.expires_at is null or k.expires_at > now())
`;

interface KeyRow {
  tenant_id: string;
  secret_digest: Buffer;
  scopes: Scope[];
  suspended: boolean;
}

// Compared with when there is no such key, so that an unknown id takes the same steps as a wrong secret.
const NO_DIGEST = Buffer.alloc(32);

/**
 * Tells whose key this is. One and the same `invalid_api_key` for a malformed, unknown, wrong, revoked or expired key;
 * `tenant_suspended` for a good key of a suspended tenant. Nothing is cached: a revocation acts on the next request.
 */
export async function authenticateKey(db: Queryable, keyText: string): Promise<KeyHolder> {
  const parts = readKeyText(keyText);
  if (parts === null) throw new AppError('invalid_api_key');
  const { rows } = await db.query<KeyRow>({
    name: 'authenticate-key',
    text: READ_KEY,
    values: [parts.keyId],
  });
  const row = rows[0];
  const same = timingSafeEqual(row?.secret_digest ?? NO_DIGEST, digestKeyText(keyText));
  if (row === undefined || !same) throw new AppError('invalid_api_key');
  if (row.suspended) throw new AppError('tenant_suspended');
  return { tenantId: row.tenant_id, keyId: parts.keyId, scopes: row.scopes };
}
