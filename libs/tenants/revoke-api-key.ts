import { IsNull } from 'typeorm';
import { ApiKey } from './api-key.entity.js';
import type { Repositories } from './create-tenant.js';

/** Revokes a key; it is refused from the next request on. False when the tenant has no such live key. */
export async function revokeApiKey(source: Repositories, tenantId: string, keyId: string): Promise<boolean> {
  const { affected } = await source
    .getRepository(ApiKey)
    .update({ tenantId, id: keyId, revokedAt: IsNull() }, { revokedAt: () => 'now()' });
  return affected === 1;
}
