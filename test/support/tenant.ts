import { createApiKey, createTenant } from '#tenants';
import { Pool } from 'pg';

import { type ApiClient, createClient } from './api-client.js';

/** A tenant with one API key, and its client where the API's URL was given. */
export interface TestTenant {
  readonly tenantId: string;
  readonly key: string;
  readonly client: ApiClient | undefined;
}

export interface TenantOptions {
  readonly name?: string;
  /** `admin`, which holds every other scope, unless told otherwise. */
  readonly scopes?: readonly string[];
  readonly apiUrl?: string;
}

/** Makes a tenant and its key in the database, as the operator's command does. */
export async function createTenantWithKey(
  databaseUrl: string,
  options: TenantOptions = {},
): Promise<TestTenant> {
  const pool = new Pool({ connectionString: databaseUrl, max: 1 });
  try {
    const tenant = await createTenant(pool, { name: options.name ?? 'Tenant of a test' });
    const { key } = await createApiKey(pool, tenant.id, {
      name: 'test',
      scopes: [...(options.scopes ?? ['admin'])],
    });
    return {
      tenantId: tenant.id,
      key,
      client: options.apiUrl === undefined ? undefined : createClient(options.apiUrl, key),
    };
  } finally {
    await pool.end();
  }
}
