import pg from 'pg';
import type { DataSource } from 'typeorm';
import { CODE_REVISION } from '#migrations';
import { AppError } from './app-error.js';
import { openDataSource } from './data-source.js';
import type { DatabaseRole, Queryable } from './database.js';
import { prepareRoles } from './prepare-roles.js';
import { toRoleError } from './role-error.js';

/** Days of partitions that stand ahead of today; yesterday's is made too, for transactions open over midnight. */
export const PARTITION_DAYS_AHEAD = 14;

/** Hashed once by hand: any constant does, as long as every process takes the same one. */
const MIGRATION_LOCK = 7_792_411_305;

/**
 * Brings the database to this code's revision and makes the day partitions. Safe to call from any number of
 * processes at once: one applies, the others wait on a session lock and find nothing to do.
 */
export async function migrate(url: string): Promise<{ applied: string[] }> {
  const client = new pg.Client({
    connectionString: url,
    application_name: 'waybill-migrate',
    connectionTimeoutMillis: 10_000,
  });
  await client.connect();
  try {
    await client.query('select pg_advisory_lock($1)', [MIGRATION_LOCK]);
    await prepareRoles(client);
    const applied = await applyMigrations(url);
    await createDayPartitions(client);
    return { applied };
  } finally {
    await client.end();
  }
}

/** Undoes the newest migration; for tests and for a release that is taken back. */
export async function migrateDown(url: string): Promise<void> {
  const source = await openSource(url);
  try {
    await source.undoLastMigration({ transaction: 'each' });
  } finally {
    await source.destroy();
  }
}

/** Without a statement timeout: a migration of a filled table takes as long as it takes. */
function openSource(url: string): Promise<DataSource> {
  return openDataSource({
    url,
    role: 'waybill_owner',
    entities: [],
    applicationName: 'waybill-migrate',
    max: 1,
    statementTimeoutMs: 0,
  });
}

async function applyMigrations(url: string): Promise<string[]> {
  const source = await openSource(url);
  try {
    const done = await source.runMigrations({ transaction: 'each' });
    return done.map((migration) => migration.name);
  } finally {
    await source.destroy();
  }
}

/** Makes the partitions of yesterday, today and the days ahead; returns how many tables were missing. */
export async function createDayPartitions(db: Queryable): Promise<number> {
  const { rows } = await db.query<{ made: number }>({
    text: `select waybill.create_day_partitions((now() at time zone 'UTC')::date - 1, $1) as made`,
    values: [PARTITION_DAYS_AHEAD + 2],
  });
  return rows[0]!.made;
}

/**
 * Throws `schema_missing` or `schema_revision_mismatch`, naming both revisions, unless this code can run on the
 * database as it stands; `database_role_unavailable` when the login may not act as `role`, under which `db` works.
 */
export async function assertSchemaRevision(db: Queryable, role: DatabaseRole | null = null): Promise<void> {
  const found = await readSchemaRevision(db).catch((error: unknown) => {
    throw toRoleError(error, role);
  });
  if (found === null) {
    throw new AppError(
      'schema_missing',
      `The database holds no Waybill schema; this code needs revision ${CODE_REVISION}. Run: waybill migrate`,
    );
  }
  if (found.revision < CODE_REVISION || found.servesCodeFrom > CODE_REVISION) {
    const mend = found.revision < CODE_REVISION ? 'Run: waybill migrate' : 'Start a newer release.';
    throw new AppError(
      'schema_revision_mismatch',
      `The database is at revision ${found.revision} (serves code from ${found.servesCodeFrom}), this code is written for revision ${CODE_REVISION}. ${mend}`,
    );
  }
}

async function readSchemaRevision(
  db: Queryable,
): Promise<{ revision: number; servesCodeFrom: number } | null> {
  const known = await db.query<{ present: boolean }>({
    text: `select to_regclass('waybill.schema_revision') is not null as present`,
  });
  if (!known.rows[0]!.present) return null;
  const { rows } = await db.query<{ revision: number; serves_code_from: number }>({
    text: 'select revision, serves_code_from from waybill.schema_revision',
  });
  const row = rows[0];
  return row === undefined ? null : { revision: row.revision, servesCodeFrom: row.serves_code_from };
}
