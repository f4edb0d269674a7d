import { AppError, createPool, isKeyEnv, withTransaction } from '#runtime';
import { createApiKey } from './create-api-key.js';
import { createTenant } from './create-tenant.js';

/** Any constant, as long as every process takes the same one. */
const BOOTSTRAP_LOCK = 7_792_411_306;

const WRONG_ENV = 'WAYBILL_ENV must be 1 to 16 lower-case letters and digits.';

const LOCK = 'select pg_advisory_xact_lock($1)';
const ANY_TENANT = 'select from waybill.tenants limit 1';

/**
 * On the first start makes the tenant "default" and an admin key, which is shown here and never again; null when any
 * tenant exists. Two first starts at once make one tenant.
 */
export async function bootstrapTenant(
  databaseUrl: string,
  env?: string,
): Promise<{ tenantId: string; key: string } | null> {
  // Before the processes look: their refusal would leave a key behind that is good for none.
  if (env !== undefined && !isKeyEnv(env)) throw new AppError('invalid_configuration', WRONG_ENV);
  const pool = createPool({
    url: databaseUrl,
    role: 'waybill_operator',
    max: 1,
    applicationName: 'waybill-bootstrap',
    statementTimeoutMs: 10_000,
    lockTimeoutMs: 10_000,
    // The next statement reports it.
    onIdleError: () => undefined,
  });
  try {
    return await withTransaction(pool, async (tx) => {
      await tx.query({ text: LOCK, values: [BOOTSTRAP_LOCK] });
      if ((await tx.query({ text: ANY_TENANT })).rows.length > 0) return null;
      const { id } = await createTenant(tx, { name: 'default' });
      const { key } = await createApiKey(tx, id, { name: 'first start', scopes: ['admin'] }, env);
      return { tenantId: id, key };
    });
  } finally {
    await pool.end();
  }
}
