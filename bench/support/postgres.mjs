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
const EMPTY = `
set session_replication_role = replica;
do $$
declare
  name regclass;
begin
  for name in
    select oid from pg_class
    where relnamespace = 'waybill'::regnamespace and relkind in ('r', 'p') and not relispartition
      and relname not in ('migrations', 'schema_revision')
  loop
    execute format('delete from %s', name);
  end loop;
end
$$`;

/**
 * Starts the bench's own PostgreSQL in a folder of its own. `close` stops it and removes the folder. Only a smoke, which
 * measures nothing, runs without `durable`.
 */
export async function startPostgres({ durable }) {
  const folder = mkdtempSync(join(tmpdir(), 'waybill-bench-'));
  const removeFolder = onCleanUp(() => rmSync(folder, { recursive: true, force: true }));
  // Under root the server runs as another account, which has to pass through here.
  chmodSync(folder, 0o755);
  const starting = startEmbeddedPostgres({ dataDir: join(folder, 'postgres'), durable, settings: SETTINGS });
  const stopServer = onCleanUp(async () => (await starting).stop());
  const server = await starting;
  const urlOf = (name) => Object.assign(new URL(server.url), { pathname: `/${name}` }).href;
  const admin = (text) => once(urlOf('postgres'), text);
  await admin(`create database ${TEMPLATE}`);
  await migrate(urlOf(TEMPLATE));
  await once(urlOf(TEMPLATE), 'create extension pg_stat_statements');
  const { version } = await admin(`select current_setting('server_version') as version`);
  const databases = durable ? freshDatabases(admin, urlOf) : oneDatabase(admin, urlOf);
  return {
    pid: server.pid,
    version,
    /** A migrated and empty database for one measurement; `drop` ends it, whoever is still connected. */
    createDatabase: databases,
    async close() {
      await stopServer();
      await removeFolder();
    },
  };
}

function freshDatabases(admin, urlOf) {
  let made = 0;
  return async () => {
    made += 1;
    const name = `bench_${made}`;
    await admin(`create database ${name} template ${TEMPLATE}`);
    const url = urlOf(name);
    const pool = createBenchPool(url);
    const drop = onCleanUp(async () => {
      await pool.end();
      await admin(`drop database ${name} with (force)`);
    });
    return { url, pool, drop };
  };
}

// For a smoke: making a database takes longer than what is done in it, so one is emptied again and again.
function oneDatabase(admin, urlOf) {
  const url = urlOf(TEMPLATE);
  return () => {
    const pool = createBenchPool(url);
    const drop = onCleanUp(async () => {
      await pool.query(EMPTY);
      await pool.end();
    });
    return { url, pool, drop };
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
