import type { Queryable } from '#runtime';
import { API_KEY_COLUMNS, toApiKey, type ApiKey, type ApiKeyRow } from './api-key.js';

const LIST_API_KEYS = `
select ${API_KEY_COLUMNS}
from waybill.api_keys k
where k.tenant_id = $1
  and ($2::uuid is null or k.id < $2)
order by k.id desc
limit $3
`;

/** A tenant's keys, newest first, at most `limit`, those older than the key `afterId` when it is given; the ended ones too. */
export async function listApiKeys(
  db: Queryable,
  tenantId: string,
  { afterId, limit }: { readonly afterId: string | null; readonly limit: number },
): Promise<ApiKey[]> {
  const { rows } = await db.query<ApiKeyRow>({ text: LIST_API_KEYS, values: [tenantId, afterId, limit] });
  return rows.map(toApiKey);
}
