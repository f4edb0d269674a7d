import { readFile } from 'node:fs/promises';

import { CODE_REVISION } from '#migrations';
import { describeSchema, migrate, migrateDown } from '#runtime';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

import { bootApi, BootError, bootDispatcher, runCli } from '../support/apps.js';
import { createEmptyDatabase, createTestDatabase, type TestDatabase } from '../support/database.js';

let database: TestDatabase;
afterEach(() => database.drop());

interface Refusal {
  readonly code: number | null;
  readonly output: string;
}

async function refused(boot: Promise<unknown>): Promise<Refusal> {
  const error: unknown = await boot.catch((reason: unknown) => reason);
  if (error instanceof BootError) return error;
  throw new Error('it started');
}

/** How the api, the dispatcher and the command line refuse this database: exit code and all they said. */
async function refusals(): Promise<Refusal[]> {
  const options = { databaseUrl: database.url };
  const [api, dispatcher, cli] = await Promise.all([
    refused(bootApi(options)),
    refused(bootDispatcher(options)),
    runCli(['tenant', 'create', '--name', 'acme'], { DATABASE_URL: database.url }),
  ]);
  return [api, dispatcher, { code: cli.code, output: cli.stdout + cli.stderr }];
}

describe('a database that this code cannot run on', () => {
  it('[row 95] without a schema is refused by the api, the dispatcher and the command line', async () => {
    database = await createEmptyDatabase();
    for (const { code, output } of await refusals()) {
      expect(code).toBe(1);
      expect(output).toContain('no Waybill schema');
      expect(output).toContain(`revision ${CODE_REVISION}`);
      expect(output).toContain('waybill migrate');
    }
    const { rows } = await database.pool.query(`select nspname from pg_namespace where nspname = 'waybill'`);
    expect(rows).toEqual([]);
  });

  it.each([
    ['older', CODE_REVISION - 1, CODE_REVISION - 1, 'waybill migrate'],
    ['newer, and serving only newer code', CODE_REVISION + 2, CODE_REVISION + 1, 'newer release'],
  ])(
    '[row 95] at a revision that is %s is refused by all three, naming both',
    async (_, revision, serves, mend) => {
      database = await createTestDatabase();
      // At revision 1 there is no older one to be at: the table's own check has to step aside.
      await database.pool.query(`
      alter table waybill.schema_revision drop constraint schema_revision_revision_check, drop constraint schema_revision_check;
      update waybill.schema_revision set revision = ${revision}, serves_code_from = ${serves}`);
      for (const { code, output } of await refusals()) {
        expect(code).toBe(1);
        expect(output).toMatch(new RegExp(`at revision ${revision}\\b`));
        expect(output).toMatch(new RegExp(`for revision ${CODE_REVISION}\\b`));
        expect(output).toContain(mend);
      }
      const { rows } = await database.pool.query('select from waybill.tenants');
      expect(rows).toEqual([]);
    },
  );

  it('[row 95] is not one that a newer release left in a state which still serves this code', async () => {
    database = await createTestDatabase();
    await database.pool.query(`update waybill.schema_revision set revision = ${CODE_REVISION + 1}`);
    const options = { databaseUrl: database.url };
    for (const app of await Promise.all([bootApi(options), bootDispatcher(options)])) {
      expect(await app.stop()).toEqual({ code: 0, signal: null });
    }
  });
});

describe('migrations', () => {
  beforeEach(async () => {
    database = await createEmptyDatabase();
  });

  it('[row 95] up, down and up again leave no drift from migrations/schema.sql', async () => {
    const up = await migrate(database.url);
    expect(up.applied).toHaveLength(CODE_REVISION);
    const first = await describeSchema(database.pool);
    const written = await readFile(new URL('../../migrations/schema.sql', import.meta.url), 'utf8');
    // The file begins with a comment and an empty line.
    expect(written.slice(written.indexOf('\n\n') + 2)).toBe(first);
    expect(first).toContain('create table waybill.delivery_queue');

    await migrateDown(database.url);
    const down = await describeSchema(database.pool);
    expect(down).not.toBe(first);
    const again = await migrate(database.url);
    expect(again.applied).toEqual(up.applied.slice(-1));
    expect(await describeSchema(database.pool)).toBe(first);
    expect((await migrate(database.url)).applied).toEqual([]);
  });

  it('[row 95] taken back to the very first leave nothing in the schema but their own table', async () => {
    await migrate(database.url);
    for (let step = 0; step < CODE_REVISION; step += 1) await migrateDown(database.url);
    const { rows } = await database.pool.query(`
      select relname from pg_class where relnamespace = 'waybill'::regnamespace and relkind in ('r', 'p')
      union all select proname from pg_proc where pronamespace = 'waybill'::regnamespace`);
    expect(rows).toEqual([{ relname: 'migrations' }]);
  });
});
