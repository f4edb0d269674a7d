import { openDataSource } from '#runtime';
import { ApiKey } from './api-key.entity.js';
import { createApiKey } from './create-api-key.js';
import { createTenant } from './create-tenant.js';
import { Tenant } from './tenant.entity.js';

/** Any constant, as long as every process takes the same one. */
const BOOTSTRAP_LOCK = 7_792_411_306;

/**
 * On the first start makes the tenant "default" and an admin key, which is shown here and never again; null when any
 * tenant exists. Two first starts at once make one tenant.
 */
export async function bootstrapTenant(
  databaseUrl: string,
): Promise<{ tenantId: string; key: string } | null> {
  const source = await openDataSource({
    url: databaseUrl,
    role: 'waybill_operator',
    entities: [Tenant, ApiKey],
    applicationName: 'waybill-bootstrap',
    max: 1,
  });
  try {
    return await source.transaction(async (tx) => {
      await tx.query('select pg_advisory_xact_lock($1)', [BOOTSTRAP_LOCK]);
      if (await tx.getRepository(Tenant).exists()) return null;
      const { id } = await createTenant(tx, { name: 'default' });
      const { key } = await createApiKey(tx, id, { name: 'first start', scopes: ['admin'] });
      return { tenantId: id, key };
    });
  } finally {
    await source.destroy();
  }
}
