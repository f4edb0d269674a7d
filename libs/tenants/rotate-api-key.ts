import { AppError, type Queryable } from '#runtime';
import { API_KEY_COLUMNS, toApiKey, type ApiKey, type ApiKeyRow } from './api-key.js';
import { createApiKey, type CreatedApiKey } from './create-api-key.js';
import { findApiKey } from './find-api-key.js';
import { assertMayGive, type Scope } from './scopes.js';

/** An end that comes sooner stays. */
const END_API_KEY = `
update waybill.api_keys k
set expires_at = least(k.expires_at, now() + $3 * interval '1 second'), version = k.version + 1
where k.tenant_id = $1
  and k.id = $2
  and k.revoked_at is null
  and (k.expires_at is null or k.expires_at > now())
returning ${API_KEY_COLUMNS}
`;

/** How long a replaced key stays good unless told otherwise, and at most. */
export const OVERLAP_SECONDS_DEFAULT = 86_400;
export const OVERLAP_SECONDS_MAX = 30 * 86_400;

export interface KeyRotation {
  readonly keyId: string;
  readonly overlapSeconds: number;
  /** The scopes of whoever asks: the new key's text would give them those of the old one. Null for the operator. */
  readonly held: readonly Scope[] | null;
}

/**
 * Makes a key with the name and scopes of a live one, which ends when the overlap is over; in the caller's transaction,
 * so that it is both or neither. Throws `api_key_not_found`, `api_key_ended` and `insufficient_scope`.
 */
export async function rotateApiKey(
  tx: Queryable,
  tenantId: string,
  { keyId, overlapSeconds, held }: KeyRotation,
  env?: string,
): Promise<{ readonly made: CreatedApiKey; readonly replaced: ApiKey }> {
  const before = await findApiKey(tx, tenantId, keyId);
  if (held !== null) assertMayGive(held, before.scopes);
  const { rows } = await tx.query<ApiKeyRow>({
    text: END_API_KEY,
    values: [tenantId, keyId, overlapSeconds],
  });
  if (rows[0] === undefined) throw new AppError('api_key_ended', `The key is ${before.status}.`);
  const replaced = toApiKey(rows[0]);
  const made = await createApiKey(tx, tenantId, { name: replaced.name, scopes: replaced.scopes }, env);
  return { made, replaced };
}
