import { timingSafeEqual } from 'node:crypto';
import { AppError, type Queryable } from '#runtime';
import { digestKeyText, KEY_ENV_DEFAULT, readKeyText } from './key-text.js';
import type { Scope } from './scopes.js';

/** Who is asking, as a valid key says. */
export interface KeyHolder {
  readonly tenantId: string;
  readonly keyId: string;
  readonly scopes: readonly Scope[];
  /** Whether an endpoint of the tenant has a filter: what its events cost then is the tenant's to decide. */
  readonly hasFilters: boolean;
}

const READ_KEYS = `
select k.id, k.tenant_id, k.secret_digest, k.scopes, t.suspended_at is not null as suspended,
  exists (select from waybill.endpoints p where p.tenant_id = k.tenant_id and p.filter_path is not null) as has_filters
from waybill.api_keys k
join waybill.tenants t on t.id = k.tenant_id
where k.id = any($1)
  and t.deleted_at is null
  and k.revoked_at is null
  and (k.expires_at is null or k.expires_at > now())
`;

interface KeyRow {
  id: string;
  tenant_id: string;
  secret_digest: Buffer;
  scopes: Scope[];
  suspended: boolean;
  has_filters: boolean;
}

// Compared with when there is no such key, so that an unknown id takes the same steps as a wrong secret.
const NO_DIGEST = Buffer.alloc(32);

/**
 * Tells whose keys these are, in order, by one statement: the holder, or the refusal. One and the same
 * `invalid_api_key` for a key that is malformed, unknown, wrong, revoked, expired, of another env or of a deleted tenant; `tenant_suspended` for a good key of a
 * suspended tenant. Nothing is cached: a revocation that has committed acts on every call that starts after it.
 */
export async function authenticateKeys(
  db: Queryable,
  keyTexts: readonly string[],
  env: string = KEY_ENV_DEFAULT,
): Promise<readonly (KeyHolder | AppError)[]> {
  const ids = new Map<string, string | null>();
  for (const text of keyTexts) if (!ids.has(text)) ids.set(text, readKeyText(text, env)?.keyId ?? null);
  const rows = await readRows(db, ids);
  const verdicts = new Map([...ids].map(([text, id]) => [text, judge(text, id, rows)]));
  return keyTexts.map((text) => verdicts.get(text)!);
}

async function readRows(
  db: Queryable,
  ids: ReadonlyMap<string, string | null>,
): Promise<Map<string, KeyRow>> {
  const known = new Set([...ids.values()].filter((id) => id !== null));
  if (known.size === 0) return new Map();
  const { rows } = await db.query<KeyRow>({
    name: 'authenticate-keys',
    text: READ_KEYS,
    values: [[...known]],
  });
  return new Map(rows.map((row) => [row.id, row]));
}

function judge(
  keyText: string,
  keyId: string | null,
  rows: ReadonlyMap<string, KeyRow>,
): KeyHolder | AppError {
  if (keyId === null) return new AppError('invalid_api_key');
  const row = rows.get(keyId);
  const same = timingSafeEqual(row?.secret_digest ?? NO_DIGEST, digestKeyText(keyText));
  if (row === undefined || !same) return new AppError('invalid_api_key');
  if (row.suspended) return new AppError('tenant_suspended');
  return { tenantId: row.tenant_id, keyId, scopes: row.scopes, hasFilters: row.has_filters };
}
