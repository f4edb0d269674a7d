import { AppError, type Queryable } from '#runtime';
import { API_KEY_COLUMNS, toApiKey, type ApiKey, type ApiKeyRow } from './api-key.js';
import { assertName } from './assert-name.js';
import { findApiKey } from './find-api-key.js';

const RENAME_API_KEY = `
update waybill.api_keys k
set name = $4, version = k.version + 1
where k.tenant_id = $1
  and k.id = $2
  and k.version = $3
returning ${API_KEY_COLUMNS}
`;

/**
 * Gives a key another name if it is at a version that is expected: of two at once, one. Throws `api_key_not_found` and
 * `stale_version`.
 */
export async function renameApiKey(
  db: Queryable,
  tenantId: string,
  { id, name }: { readonly id: string; readonly name: string },
  expects: (version: number) => boolean,
): Promise<ApiKey> {
  assertName(name);
  for (;;) {
    const { version } = await findApiKey(db, tenantId, id);
    if (!expects(version)) throw new AppError('stale_version', `The key is at version ${version}.`);
    const values = [tenantId, id, version, name];
    const { rows } = await db.query<ApiKeyRow>({ text: RENAME_API_KEY, values });
    // Nothing: somebody was quicker, and it is at another version now.
    if (rows[0] !== undefined) return toApiKey(rows[0]);
  }
}
