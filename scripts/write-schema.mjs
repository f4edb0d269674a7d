// Writes migrations/schema.sql from a database that holds every migration; with --check it only compares.
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createPool, describeSchema, migrate, startEmbeddedPostgres } from '../dist/libs/runtime/index.js';

const FILE = new URL('../migrations/schema.sql', import.meta.url);
const HEAD =
  '-- The schema after every migration, for reading and for review. Written by: npm run schema\n\n';

const folder = await mkdtemp(join(tmpdir(), 'waybill-schema-'));
const postgres = await startEmbeddedPostgres({ dataDir: join(folder, 'data'), durable: false });
let text;
try {
  await migrate(postgres.url);
  const pool = createPool({
    url: postgres.url,
    role: null,
    max: 1,
    applicationName: 'waybill-schema',
    statementTimeoutMs: 10_000,
    lockTimeoutMs: 2_000,
    onIdleError: () => undefined,
  });
  text = HEAD + (await describeSchema(pool));
  await pool.end();
} finally {
  await postgres.stop();
  await rm(folder, { recursive: true, force: true });
}

if (!process.argv.includes('--check')) {
  await writeFile(FILE, text);
  console.log('migrations/schema.sql is written');
} else if ((await readFile(FILE, 'utf8').catch(() => '')) !== text) {
  console.error('migrations/schema.sql is not what the migrations make. Run: npm run schema');
  process.exitCode = 1;
}
