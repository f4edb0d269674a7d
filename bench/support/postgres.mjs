import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { migrate, startEmbeddedPostgres } from '#runtime';
import { onCleanUp } from './cleanup.mjs';

// Durable, as in production: fsync, full_page_writes and synchronous_commit stay on. No checkpoint falls into a
// measurement by its size or its time.
const SETTINGS = {
  shared_buffers: '512MB',
  max_wal_size: '8GB',
  checkpoint_timeout: '30min',
  max_connections: '100',
  shared_preload_libraries: 'pg_stat_statements',
  'pg_stat_statements.max': '1000',
  track_io_timing: 'off',
};
const TEMPLATE = 'bench_template';

/**
 * Starts the bench's own PostgreSQL in a folder of its own. `close` stops it and removes the folder. Only a smoke, which
 * measures nothing, runs without `durable`.
 */
export async function startPostgres({ durable }) {
  const folder = mkdtempSync(join(tmpdir(), 'waybill-bench-'));
  const removeFolder = onCleanUp(() => rmSync(folder, { recursive: true, force: true }));
  // Under root the server runs as another account, which has to pass through here.
  chmodSync(folder, 0o755);
  const server = await startEmbeddedPostgres({
    dataDir: join(folder, 'postgres'),
    durable,
    settings: SETTINGS,
  });
  const stopServer = onCleanUp(() => server.stop());
  const urlOf = (name) => Object.assign(new URL(server.url), { pathname: `/${name}` }).href;
  const admin = (text) => once(urlOf('postgres'), text);
  await admin(`create database ${TEMPLATE}`);
  await migrate(urlOf(TEMPLATE));
  await once(urlOf(TEMPLATE), 'create extension pg_stat_statements');
  const { version } = await admin(`select current_setting('server_version') as version`);
  let made = 0;
  return {
    pid: server.pid,
    version,
    /** A migrated database of its own for one measurement; `drop` throws out whoever is still connected. */
    async createDatabase() {
      made += 1;
      const name = `bench_${made}`;
      await admin(`create database ${name} template ${TEMPLATE}`);
      const url = urlOf(name);
      const pool = createBenchPool(url);
      const drop = onCleanUp(async () => {
        await pool.end();
        if (durable) await admin(`drop database ${name} with (force)`);
      });
      return { url, pool, drop };
    },
    async close() {
      await stopServer();
      await removeFolder();
    },
  };
}

function createBenchPool(url) {
  const pool = new pg.Pool({ connectionString: url, max: 4, application_name: 'waybill-bench' });
  pool.on('error', () => undefined);
  return pool;
}

async function once(url, text) {
  const client = new pg.Client({ connectionString: url, application_name: 'waybill-bench' });
  await client.connect();
  try {
    const { rows } = await client.query(text);
    return rows[0];
  } finally {
    await client.end();
  }
}
