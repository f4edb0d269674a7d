import { createApiKey, createTenant, type Scope } from '#tenants';

import { type ApiClient, createClient } from './api-client.js';
import { createTestPool } from './database.js';

/** A tenant with one API key. */
export interface TestTenant {
  /** As the database has it, without a prefix. */
  readonly tenantId: string;
  readonly key: string;
  /** A client with this key for the API at `url`. */
  clientOf(url: string): ApiClient;
}

export interface TenantOptions {
  readonly name?: string;
  /** `admin`, which allows everything, unless told otherwise. */
  readonly scopes?: readonly Scope[];
}

/** Makes a tenant and a key for it, by the functions that the operator's command uses. */
export async function createTenantWithKey(
  databaseUrl: string,
  { name = 'Tenant of a test', scopes = ['admin'] }: TenantOptions = {},
): Promise<TestTenant> {
  const pool = createTestPool(databaseUrl, 1);
  try {
    const { id: tenantId } = await createTenant(pool, { name });
    const { key } = await createApiKey(pool, tenantId, { name: 'test', scopes });
    return { tenantId, key, clientOf: (url) => createClient(url, key) };
  } finally {
    await pool.end();
  }
}
