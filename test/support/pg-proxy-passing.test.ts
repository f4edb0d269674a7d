import { connect, Socket } from 'node:net';

import { Pool } from 'pg';
import { describe, expect, it } from 'vitest';

import { named, ProxiedEntries, simple, unnamed } from './proxied-entries.js';
import { waitFor } from './wait-for.js';

const entries = new ProxiedEntries();

describe('a proxy without faults', () => {
  it('passes simple, unnamed and named statements and their errors', async () => {
    const client = await entries.connectClient();
    await client.query(simple(1));
    await client.query(unnamed(2));
    await client.query(named(3));
    await client.query(named(4));
    await expect(client.query(named(4))).rejects.toMatchObject({ code: '23505' });
    await client.query(named(5));
    expect(await entries.storedIds()).toEqual([1, 2, 3, 4, 5]);
    expect(entries.proxy.statements.get('insert into entries values ($1)')).toBe(5);
    await client.end();
    await waitFor(() => entries.proxy.connections === 0, { what: 'the connection to be over' });
  });

  it('passes megabytes in both directions unharmed', async () => {
    const client = await entries.connectClient();
    const note = 'wäybill '.repeat(1_000_000);
    await client.query('insert into entries values (1, $1)', [note]);
    const { rows } = await client.query<{ note: string }>('select note from entries, generate_series(1, 3)');
    expect(rows.map((row) => row.note === note)).toEqual([true, true, true]);
    const { rows: many } = await client.query<{ n: number }>(
      `select n from generate_series(1, 100000) n -- ${note}`,
    );
    expect(many.length).toBe(100_000);
  });

  it('passes many statements of many connections at once', async () => {
    const pool = new Pool({ connectionString: entries.proxy.url, max: 10 });
    await Promise.all(Array.from({ length: 500 }, (_, id) => pool.query(named(id))));
    expect(await entries.storedIds()).toHaveLength(500);
    await pool.end();
  });

  it('passes notifications to an idle client', async () => {
    const client = await entries.connectClient();
    await client.query('listen news');
    const notified = new Promise<string | undefined>((resolve) =>
      client.once('notification', ({ payload }) => resolve(payload)),
    );
    await entries.database.pool.query(`notify news, 'extra'`);
    expect(await notified).toBe('extra');
  });

  it('passes a cancel request', async () => {
    const client = await entries.connectClient();
    const sleeping = client.query('select pg_sleep(60)');
    const failure = sleeping.catch((error: unknown) => error);
    await waitFor(() => entries.proxy.statements.has('select pg_sleep(60)'), {
      what: 'the query to be on its way',
    });
    await waitFor(
      async () =>
        (await entries.database.pool.query(`select 1 from pg_stat_activity where wait_event = 'PgSleep'`))
          .rowCount,
      { what: 'the backend to sleep' },
    );
    // pg keeps what a cancel request needs, but does not type it.
    const [processId, secretKey] = ['processID', 'secretKey'].map((field) =>
      Number(Reflect.get(client, field)),
    );
    const cancelRequest = Buffer.alloc(16);
    for (const [at, value] of [16, 80_877_102, processId!, secretKey!].entries())
      cancelRequest.writeInt32BE(value, at * 4);
    const canceller = connect(Number(new URL(entries.proxy.url).port), '127.0.0.1');
    canceller.on('error', () => undefined);
    canceller.end(cancelRequest);
    expect(await failure).toMatchObject({ code: '57014' });
  });
});

describe('the proxy as a whole', () => {
  it('cuts all connections', async () => {
    const [first, second] = [await entries.connectClient(), await entries.connectClient()];
    entries.proxy.on('insert', { moment: 'before', action: 'swallow' });
    const held = first.query(unnamed(1));
    const failure = held.catch((error: unknown) => error);
    entries.proxy.cutAll();
    expect(await failure).toBeInstanceOf(Error);
    await expect(second.query('select 1')).rejects.toThrow(
      /ECONNRESET|terminated|not queryable|connection error/,
    );
    expect(entries.proxy.connections).toBe(0);
  });

  it('as a black hole passes nothing, and afterwards everything', async () => {
    const client = await entries.connectClient();
    entries.proxy.blackhole(true);
    let answered = false;
    const waiting = client.query(unnamed(1)).finally(() => (answered = true));
    const late = entries.connectClient();
    await waitFor(() => entries.proxy.connections === 2, { what: 'the second connection to be accepted' });
    expect(await entries.storedIds()).toEqual([]);
    expect(answered).toBe(false);
    entries.proxy.blackhole(false);
    await waiting;
    await (await late).query(unnamed(2));
    expect(await entries.storedIds()).toEqual([1, 2]);
  });

  it('as a black hole hides from the server that a client has left', async () => {
    const socket = new Socket();
    const client = await entries.connectClient(socket);
    await client.query('select 1');
    entries.proxy.blackhole(true);
    socket.destroy();
    await entries.database.pool.query('select 1');
    expect(await entries.backends()).toBe(1);
    entries.proxy.blackhole(false);
    await waitFor(async () => (await entries.backends()) === 0, { what: 'the backend to be gone' });
  });

  it('refuses new connections, keeps open ones, and accepts again', async () => {
    const client = await entries.connectClient();
    await entries.proxy.refuse(true);
    await expect(entries.connectClient()).rejects.toMatchObject({ code: 'ECONNREFUSED' });
    await client.query(unnamed(1));
    await entries.proxy.refuse(false);
    await (await entries.connectClient()).query(unnamed(2));
    expect(await entries.storedIds()).toEqual([1, 2]);
  });
});
