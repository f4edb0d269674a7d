import type { DataSource } from 'typeorm';
import { assertSchemaRevision, openDataSource, createPool, type Config, type DatabaseRole } from '#runtime';
import { ApiKey, Tenant } from '#tenants';

/** Runs `work` on a database at a revision that this code can run on, and lets go of it; refuses any other. */
export async function withSource<Result>(
  config: Config,
  work: (source: DataSource) => Promise<Result>,
): Promise<Result> {
  const pool = openPool(config.databaseUrl);
  try {
    await assertSchemaRevision(pool);
  } finally {
    await pool.end();
  }
  const source = await openDataSource({
    url: config.databaseUrl,
    role: 'waybill_operator',
    entities: [Tenant, ApiKey],
    applicationName: 'waybill-cli',
    max: 1,
  });
  try {
    return await work(source);
  } finally {
    await source.destroy();
  }
}

/** One connection for a command's questions, under a role if it needs one. */
export function openPool(url: string, role: DatabaseRole | null = null) {
  return createPool({
    url,
    role,
    max: 1,
    applicationName: 'waybill-cli',
    statementTimeoutMs: 10_000,
    lockTimeoutMs: 2_000,
    // The next statement reports it.
    onIdleError: () => undefined,
  });
}
