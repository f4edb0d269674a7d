import { Socket } from 'node:net';

import { Client, type QueryConfig } from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach } from 'vitest';

import { createEmptyDatabase, type TestDatabase } from './database.js';
import { type PgProxy, startPgProxy } from './pg-proxy.js';

export const simple = (id: number): QueryConfig => ({ text: `insert into entries values (${id})` });
export const unnamed = (id: number): QueryConfig => ({
  text: 'insert into entries values ($1)',
  values: [id],
});
export const named = (id: number): QueryConfig => ({ name: 'insert-entry', ...unnamed(id) });

/** A database with an empty table `entries`, and a fresh proxy in front of it, for each test of the calling file. */
export class ProxiedEntries {
  database!: TestDatabase;
  proxy!: PgProxy;

  constructor() {
    beforeAll(async () => {
      this.database = await createEmptyDatabase();
    });
    afterAll(() => this.database.drop());
    beforeEach(async () => {
      this.proxy = await startPgProxy(this.database.url);
      await this.database.pool.query('drop table if exists entries');
      await this.database.pool.query('create table entries (id int primary key, note text)');
    });
    afterEach(() => this.proxy.close());
  }

  /** A client by way of the proxy. Its loss is no error of the test. */
  async connectClient(socket = new Socket()): Promise<Client> {
    const client = new Client({ connectionString: this.proxy.url, stream: () => socket });
    client.on('error', () => undefined);
    await client.connect();
    return client;
  }

  /** What is committed, seen past the proxy. */
  async storedIds(): Promise<number[]> {
    const { rows } = await this.database.pool.query<{ id: number }>('select id from entries order by id');
    return rows.map(({ id }) => id);
  }

  /** How many server processes the proxy's clients have. */
  async backends(): Promise<number> {
    const { rowCount } = await this.database.pool.query(
      `select 1 from pg_stat_activity where datname = current_database() and application_name = ''`,
    );
    return rowCount ?? 0;
  }
}
