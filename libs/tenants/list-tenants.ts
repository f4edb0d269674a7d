import type { Repositories } from './create-tenant.js';
import { ApiKey } from './api-key.entity.js';
import { Tenant } from './tenant.entity.js';

/** Every tenant, oldest first; for the operator. */
export function listTenants(source: Repositories): Promise<Tenant[]> {
  return source.getRepository(Tenant).find({ order: { id: 'ASC' } });
}

/** A tenant's API keys, oldest first, the revoked and expired ones too; never with a secret. */
export function listApiKeys(source: Repositories, tenantId: string): Promise<ApiKey[]> {
  return source.getRepository(ApiKey).find({ where: { tenantId }, order: { id: 'ASC' } });
}
