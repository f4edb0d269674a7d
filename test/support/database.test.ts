import { afterAll, describe, expect, it } from 'vitest';

import { createEmptyDatabase, createTestDatabase, type TestDatabase } from './database.js';
import { type PrivatePostgres, startPrivatePostgres } from './private-postgres.js';
import { createTenantWithKey } from './tenant.js';
import { drain, waitFor } from './wait-for.js';

const opened: (TestDatabase | PrivatePostgres)[] = [];
afterAll(async () => {
  for (const database of opened) await ('drop' in database ? database.drop() : database.close());
});

describe('test databases', () => {
  it('are migrated copies that do not see each other, also when made at the same time', async () => {
    const made = await Promise.all([createTestDatabase(), createTestDatabase(), createTestDatabase()]);
    opened.push(...made);
    const [first, second] = made;
    await first.pool.query('create table waybill.mark ()');
    const { rows } = await second.pool.query(
      `select to_regclass('waybill.mark') as mark, to_regclass('waybill.delivery_queue')::text as queue`,
    );
    expect(rows).toEqual([{ mark: null, queue: 'waybill.delivery_queue' }]);
    await drain(first.pool, 1_000);
  });

  it('come empty for tests of migrations', async () => {
    const empty = await createEmptyDatabase();
    opened.push(empty);
    const { rows } = await empty.pool.query(`select to_regnamespace('waybill') as schema`);
    expect(rows).toEqual([{ schema: null }]);
  });

  it('are gone once dropped, whoever was connected', async () => {
    const [kept, dropped] = [await createTestDatabase(), await createTestDatabase()];
    opened.push(kept);
    const name = new URL(dropped.url).pathname.slice(1);
    await dropped.drop();
    expect((await kept.pool.query('select 1 from pg_database where datname = $1', [name])).rowCount).toBe(0);
  });
});

describe('a tenant with a key', () => {
  it('is stored with the scopes it was asked for', async () => {
    const database = await createTestDatabase();
    opened.push(database);
    const { tenantId, key } = await createTenantWithKey(database.url, {
      name: 'Ada',
      scopes: ['events:write'],
    });
    const { rows } = await database.pool.query(
      'select t.id, t.name, k.scopes from waybill.tenants t join waybill.api_keys k on k.tenant_id = t.id',
    );
    expect(rows).toEqual([{ id: tenantId, name: 'Ada', scopes: ['events:write'] }]);
    expect(key).toMatch(/^wb_/);
  });
});

describe('a PostgreSQL of its own', () => {
  it('keeps its URL and every commit over an immediate restart and a kill', async () => {
    const server = await startPrivatePostgres();
    opened.push(server);
    const pool = server.pool;
    await pool.query('create table kept (n int)');
    for (const mode of ['immediate', 'kill'] as const) {
      const before = server.pid;
      await pool.query('insert into kept values (1)');
      await server.stop(mode);
      // Backends of a killed postmaster leave a moment after it.
      const fails = (): Promise<boolean> =>
        pool.query('select 1').then(
          () => false,
          () => true,
        );
      await waitFor(fails, { what: 'queries to fail' });
      await server.start();
      expect(server.pid).not.toBe(before);
    }
    const { rows } = await waitFor(
      () => pool.query('select count(*)::int as n from kept').catch(() => null),
      {
        what: 'the pool to reconnect',
      },
    );
    expect(rows).toEqual([{ n: 2 }]);
  });
});

describe('waiting', () => {
  it('gives the first truthy value, and says what it waited for in vain', async () => {
    let asked = 0;
    expect(await waitFor(() => (asked += 1) > 2 && 'there', { what: 'the third time' })).toBe('there');
    await expect(waitFor(() => null, { what: 'nothing', timeoutMs: 40 })).rejects.toThrow(
      'gave up waiting for nothing after 40 ms; the last answer was null',
    );
  });

  it('for an empty queue shows what is left in it', async () => {
    const empty = await createEmptyDatabase();
    opened.push(empty);
    await empty.pool.query(`create schema waybill; create table waybill.delivery_queue as select 7 as due`);
    await expect(drain(empty.pool, 40)).rejects.toThrow('{"due": 7}');
    await empty.pool.query('delete from waybill.delivery_queue');
    await drain(empty.pool, 1_000);
  });
});
