import { AppError, type Queryable } from '#runtime';
import { API_KEY_COLUMNS, toApiKey, type ApiKey, type ApiKeyRow } from './api-key.js';

const FIND_API_KEY = `
select ${API_KEY_COLUMNS}
from waybill.api_keys k
where k.tenant_id = $1
  and k.id = $2
`;

/** The tenant's key, the revoked and expired too; throws `api_key_not_found` when there is none, or it is somebody else's. */
export async function findApiKey(db: Queryable, tenantId: string, keyId: string): Promise<ApiKey> {
  const { rows } = await db.query<ApiKeyRow>({ text: FIND_API_KEY, values: [tenantId, keyId] });
  if (rows[0] === undefined) throw new AppError('api_key_not_found');
  return toApiKey(rows[0]);
}
