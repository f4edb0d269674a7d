import { readFile } from 'node:fs/promises';

import { CODE_REVISION } from '#migrations';
import { describeSchema } from '#runtime';
import { afterEach, describe, expect, it } from 'vitest';

import { startCli, stopEverything } from '../support/apps.js';
import { createEmptyDatabase, type TestDatabase } from '../support/database.js';
import { startPgProxy } from '../support/pg-proxy.js';
import { SIZES } from '../support/sizes.js';
import { waitFor } from '../support/wait-for.js';

let database: TestDatabase;
afterEach(async () => {
  await stopEverything();
  await database.drop();
});

const startMigrate = (databaseUrl: string) => startCli(['migrate', '--json'], { DATABASE_URL: databaseUrl });

/** The database holds each migration once, the whole schema, and every partition. */
async function expectMigrated(): Promise<void> {
  const { rows } = await database.pool.query<{ name: string }>('select name from waybill.migrations');
  expect(rows).toHaveLength(CODE_REVISION);
  expect(new Set(rows.map(({ name }) => name)).size).toBe(CODE_REVISION);
  const written = await readFile(new URL('../../migrations/schema.sql', import.meta.url), 'utf8');
  expect(written).toContain(await describeSchema(database.pool));
  const partitions = await database.pool.query(
    'select from pg_inherits i join pg_class c on c.oid = i.inhparent where c.relkind = $1',
    ['p'],
  );
  expect(partitions.rows).toHaveLength(3 * 16);
  const locks = await database.pool.query(
    `select from pg_locks where locktype = 'advisory' and database = (select oid from pg_database where datname = current_database())`,
  );
  expect(locks.rows).toEqual([]);
}

describe('[H15] processes that migrate at the same moment', () => {
  it.each(Array.from({ length: SIZES.migrationRounds }, (_, round) => round + 1))(
    'all end well on an empty database, and one applies each migration (round %d)',
    async () => {
      database = await createEmptyDatabase();
      const runs = await Promise.all(Array.from({ length: 6 }, () => startMigrate(database.url).ended));
      expect(runs.map(({ code, stderr }) => [code, stderr])).toEqual(runs.map(() => [0, '']));
      const applied = runs.map(({ stdout }) => (JSON.parse(stdout) as { applied: string[] }).applied);
      expect(applied.filter((names) => names.length > 0)).toHaveLength(1);
      expect(applied.flat()).toHaveLength(CODE_REVISION);
      await expectMigrated();
    },
  );
});

describe('[H15] a process that is killed while it migrates', () => {
  it.each([
    ['in the middle of a migration', 'create table waybill.delivery_queue', 'after'],
    ['before the commit', /^commit$/i, 'before'],
    ['after the commit, before the partitions', /^commit$/i, 'after'],
  ] as const)('leaves the rest to the next (killed %s)', async (_, statement, moment) => {
    database = await createEmptyDatabase();
    const proxy = await startPgProxy(database.url);
    let waiting: ReturnType<typeof startMigrate> | undefined;
    const fault = proxy.on(statement, {
      moment,
      action: {
        run: async () => {
          // A second one stands at the lock when the first one dies.
          waiting = startMigrate(database.url);
          await waitFor(isSomebodyWaiting, { what: 'a second process at the lock' });
          killed.process.kill('SIGKILL');
          await killed.ended;
        },
      },
    });
    const killed = startMigrate(proxy.url);
    const { code } = await killed.ended;
    expect([code, fault.hits]).toEqual([null, 1]);
    const next = await waiting!.ended;
    expect([next.code, next.stderr]).toEqual([0, '']);
    await expectMigrated();
    const last = await startMigrate(database.url).ended;
    expect([last.code, last.stdout]).toEqual([0, '{"applied":[]}\n']);
    await proxy.close();
  });
});

async function isSomebodyWaiting(): Promise<boolean> {
  const { rows } = await database.pool.query(
    `select from pg_locks where locktype = 'advisory' and not granted
       and database = (select oid from pg_database where datname = current_database())`,
  );
  return rows.length > 0;
}
