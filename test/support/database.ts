import { randomBytes } from 'node:crypto';

import { Client, Pool } from 'pg';
import { inject } from 'vitest';

import { databaseUrl, TEMPLATE_DATABASE } from './database-names.js';

/** A migrated database of a test file's own. */
export interface TestDatabase {
  readonly url: string;
  /** Connected as the owner, without timeouts: for what the test itself looks up and plants. */
  readonly pool: Pool;
  /** Closes the pool and drops the database, whoever is still connected. For `afterAll`. */
  drop(): Promise<void>;
}

// Copies of one template are made one after the other: all test processes agree on this number.
const TEMPLATE_LOCK = 7_411_090;

/** Copies the template, which takes some 0.1 to 0.2 s. */
export function createTestDatabase(): Promise<TestDatabase> {
  return copyDatabase(TEMPLATE_DATABASE);
}

/** An empty database without our schema, for tests of migrations. */
export function createEmptyDatabase(): Promise<TestDatabase> {
  return copyDatabase('template0');
}

async function copyDatabase(template: string): Promise<TestDatabase> {
  const adminUrl = inject('adminUrl');
  const name = `waybill_test_${randomBytes(6).toString('hex')}`;
  await asAdmin(adminUrl, async (client) => {
    await client.query('select pg_advisory_lock($1)', [TEMPLATE_LOCK]);
    await client.query(`create database ${name} template ${template}`);
  });
  const url = databaseUrl(adminUrl, name);
  const pool = createTestPool(url);
  return {
    url,
    pool,
    drop: async () => {
      await pool.end();
      await asAdmin(adminUrl, (client) => client.query(`drop database if exists ${name} with (force)`));
    },
  };
}

/** A pool for a test's own look-ups, which outlives the loss of its idle connections. */
export function createTestPool(url: string, max = 5): Pool {
  const pool = new Pool({ connectionString: url, max, application_name: 'waybill-test' });
  // Tests kill connections on purpose; the next query says if that matters.
  pool.on('error', () => undefined);
  return pool;
}

async function asAdmin(adminUrl: string, use: (client: Client) => Promise<unknown>): Promise<void> {
  const client = new Client({ connectionString: adminUrl, application_name: 'waybill-test' });
  await client.connect();
  try {
    await use(client);
  } finally {
    await client.end();
  }
}
