import { assertSchemaRevision, createPool, type Config, type Database, type DatabaseRole } from '#runtime';

/** Runs `work` as the operator on a database at a revision that this code can run on, and lets go of it; refuses any other. */
export async function withDatabase<Result>(
  config: Config,
  work: (db: Database) => Promise<Result>,
): Promise<Result> {
  const pool = openPool(config.databaseUrl, 'waybill_operator');
  try {
    await assertRevision(config);
    return await work(pool);
  } finally {
    await pool.end();
  }
}

/** By a connection without a role: a database that has no schema of ours may have no roles either. */
async function assertRevision(config: Config): Promise<void> {
  const pool = openPool(config.databaseUrl);
  try {
    await assertSchemaRevision(pool);
  } finally {
    await pool.end();
  }
}

/** One connection for a command's questions. */
export function openPool(url: string, role: DatabaseRole | null = null): Database {
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
