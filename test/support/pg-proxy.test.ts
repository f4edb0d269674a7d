import { connect, Socket } from 'node:net';

import { Client, Pool, type QueryConfig } from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';

import { createEmptyDatabase, type TestDatabase } from './database.js';
import { type PgProxy, startPgProxy } from './pg-proxy.js';
import { waitFor } from './wait-for.js';

let database: TestDatabase;
let proxy: PgProxy;

beforeAll(async () => {
  database = await createEmptyDatabase();
});
afterAll(() => database.drop());
beforeEach(async () => {
  proxy = await startPgProxy(database.url);
  await database.pool.query('drop table if exists entries');
  await database.pool.query('create table entries (id int primary key, note text)');
});
afterEach(() => proxy.close());

async function connectClient(socket = new Socket()): Promise<Client> {
  const client = new Client({ connectionString: proxy.url, stream: () => socket });
  client.on('error', () => undefined);
  await client.connect();
  return client;
}

async function storedIds(): Promise<number[]> {
  const { rows } = await database.pool.query<{ id: number }>('select id from entries order by id');
  return rows.map(({ id }) => id);
}

function backends(): Promise<number> {
  return database.pool
    .query(`select 1 from pg_stat_activity where datname = current_database() and application_name = ''`)
    .then(({ rowCount }) => rowCount ?? 0);
}

function simpleQueryMessage(sql: string): Buffer {
  const message = Buffer.from(`Q\0\0\0\0${sql}\0`);
  message.writeUInt32BE(message.length - 1, 1);
  return message;
}

const simple = (id: number): QueryConfig => ({ text: `insert into entries values (${id})` });
const unnamed = (id: number): QueryConfig => ({ text: 'insert into entries values ($1)', values: [id] });
const named = (id: number): QueryConfig => ({ name: 'insert-entry', ...unnamed(id) });
const KINDS = { simple, unnamed, named };

describe('a proxy without faults', () => {
  it('passes simple, unnamed and named statements and their errors', async () => {
    const client = await connectClient();
    await client.query(simple(1));
    await client.query(unnamed(2));
    await client.query(named(3));
    await client.query(named(4));
    await expect(client.query(named(4))).rejects.toMatchObject({ code: '23505' });
    await client.query(named(5));
    expect(await storedIds()).toEqual([1, 2, 3, 4, 5]);
    expect(proxy.statements.get('insert into entries values ($1)')).toBe(5);
    await client.end();
    await waitFor(() => proxy.connections === 0, { what: 'the connection to be over' });
  });

  it('passes megabytes in both directions unharmed', async () => {
    const client = await connectClient();
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
    const pool = new Pool({ connectionString: proxy.url, max: 10 });
    await Promise.all(Array.from({ length: 500 }, (_, id) => pool.query(named(id))));
    expect(await storedIds()).toHaveLength(500);
    await pool.end();
  });

  it('passes notifications to an idle client', async () => {
    const client = await connectClient();
    await client.query('listen news');
    const notified = new Promise<string | undefined>((resolve) =>
      client.once('notification', ({ payload }) => resolve(payload)),
    );
    await database.pool.query(`notify news, 'extra'`);
    expect(await notified).toBe('extra');
  });

  it('passes a cancel request', async () => {
    const client = await connectClient();
    const sleeping = client.query('select pg_sleep(60)');
    const failure = sleeping.catch((error: unknown) => error);
    await waitFor(() => proxy.statements.has('select pg_sleep(60)'), { what: 'the query to be on its way' });
    await waitFor(
      async () =>
        (await database.pool.query(`select 1 from pg_stat_activity where wait_event = 'PgSleep'`)).rowCount,
      { what: 'the backend to sleep' },
    );
    // pg keeps what a cancel request needs, but does not type it.
    const [processId, secretKey] = ['processID', 'secretKey'].map((field) =>
      Number(Reflect.get(client, field)),
    );
    const cancelRequest = Buffer.alloc(16);
    for (const [at, value] of [16, 80_877_102, processId!, secretKey!].entries())
      cancelRequest.writeInt32BE(value, at * 4);
    const canceller = connect(Number(new URL(proxy.url).port), '127.0.0.1');
    canceller.on('error', () => undefined);
    canceller.end(cancelRequest);
    expect(await failure).toMatchObject({ code: '57014' });
  });
});

describe.each(Object.entries(KINDS))('a fault at a %s statement', (_kind, insert) => {
  it('before + cut: the row is absent and the client sees an error', async () => {
    const client = await connectClient();
    await client.query(insert(1));
    const fault = proxy.on('insert into entries', { moment: 'before', action: 'cut' });
    await expect(client.query(insert(2))).rejects.toThrow(/ECONNRESET|terminated/);
    expect(fault.hits).toBe(1);
    await waitFor(async () => (await backends()) === 0, { what: 'the backend to be gone' });
    expect(await storedIds()).toEqual([1]);
  });

  it('after + cut: the row is present and the client sees an error', async () => {
    const client = await connectClient();
    await client.query(insert(1));
    const fault = proxy.on(/INSERT into/i, { moment: 'after', action: 'cut' });
    await expect(client.query(insert(2))).rejects.toThrow(/ECONNRESET|terminated/);
    expect(fault.hits).toBe(1);
    expect(await storedIds()).toEqual([1, 2]);
  });

  it('swallow before: nothing reaches the server until the release, then all goes on', async () => {
    const client = await connectClient();
    await client.query(insert(1));
    const fault = proxy.on('insert', { moment: 'before', action: 'swallow' });
    const held = client.query(insert(2));
    await fault.hit;
    expect(fault.held).toBe(1);
    expect(proxy.statements.size).toBe(1);
    expect(await storedIds()).toEqual([1]);
    fault.release();
    await held;
    await client.query(insert(3));
    expect(await storedIds()).toEqual([1, 2, 3]);
    expect(fault).toMatchObject({ hits: 1, held: 0 });
  });

  it('swallow after: the row is there while the client still waits, and the answer arrives whole', async () => {
    const client = await connectClient();
    await client.query(insert(1));
    const fault = proxy.on('insert', { moment: 'after', action: 'swallow' });
    let answered = false;
    const held = client.query(insert(2)).finally(() => (answered = true));
    await fault.hit;
    expect(await storedIds()).toEqual([1, 2]);
    expect(answered).toBe(false);
    fault.release();
    expect((await held).rowCount).toBe(1);
  });

  it('counts one execution once and fires as often as it was told, then leaves the next fault its turn', async () => {
    const client = await connectClient();
    const first = proxy.on('insert', { moment: 'before', action: 'release', times: 3 });
    const second = proxy.on('insert', { moment: 'before', action: 'release', times: Infinity });
    const after = proxy.on('insert', { moment: 'after', action: 'release', times: Infinity });
    for (const id of [1, 2, 3, 4, 5]) await client.query(insert(id));
    expect([first.hits, second.hits, after.hits]).toEqual([3, 2, 5]);
    expect(first.statements[2]).toContain('insert into entries');
    expect(await storedIds()).toHaveLength(5);
  });
});

describe('a fault', () => {
  it('that never matches reports no hits and changes nothing', async () => {
    const client = await connectClient();
    const fault = proxy.on('delete from entries', { moment: 'before', action: 'cut' });
    const late = proxy.on('delete from entries', { moment: 'after', action: 'cut' });
    await client.query(named(1));
    expect([fault.hits, late.hits]).toEqual([0, 0]);
    expect(await storedIds()).toEqual([1]);
  });

  it('at COMMIT, after it, loses the reply of a transaction that is durable', async () => {
    const client = await connectClient();
    const fault = proxy.on(/^commit$/i, { moment: 'after', action: 'cut' });
    await client.query('begin');
    await client.query(named(1));
    await expect(client.query('commit')).rejects.toThrow(/ECONNRESET|terminated/);
    expect(fault.hits).toBe(1);
    expect(await storedIds()).toEqual([1]);
  });

  it('at COMMIT, before it, leaves nothing of the transaction', async () => {
    const client = await connectClient();
    proxy.on(/^commit$/i, { moment: 'before', action: 'cut' });
    await client.query('begin');
    await client.query(named(1));
    await expect(client.query('commit')).rejects.toThrow(/ECONNRESET|terminated/);
    await waitFor(async () => (await backends()) === 0, { what: 'the backend to be gone' });
    expect(await storedIds()).toEqual([]);
  });

  it('runs a function at its moment and cuts only when that has ended', async () => {
    const client = await connectClient();
    let idsSeen: number[] = [];
    const fault = proxy.on('insert', {
      moment: 'after',
      action: {
        run: async () => {
          idsSeen = await storedIds();
        },
      },
    });
    await expect(client.query(unnamed(7))).rejects.toThrow(/ECONNRESET|terminated/);
    await fault.hit;
    expect(idsSeen).toEqual([7]);
  });

  it('delays a statement by the time it was given', async () => {
    const client = await connectClient();
    proxy.on('insert', { moment: 'before', action: { delayMs: 600 } });
    const start = performance.now();
    await client.query(unnamed(1));
    expect(performance.now() - start).toBeGreaterThan(590);
  });

  it('that was removed fires no more, and holds what it holds until its release', async () => {
    const [first, second] = [await connectClient(), await connectClient()];
    const fault = proxy.on('insert', { moment: 'before', action: 'swallow', times: Infinity });
    const held = first.query(unnamed(1));
    await fault.hit;
    fault.remove();
    await second.query(unnamed(2));
    expect(await storedIds()).toEqual([2]);
    fault.release();
    await held;
    expect(fault.hits).toBe(1);
  });

  it('finds its statement among pipelined ones and passes what was answered before it', async () => {
    const socket = new Socket();
    await connectClient(socket);
    const chunks: Buffer[] = [];
    socket.on('data', (chunk: Buffer) => chunks.push(chunk));
    const tags = (): number => Buffer.concat(chunks).toString('latin1').split('INSERT 0 1').length - 1;
    const fault = proxy.on('values (2)', { moment: 'after', action: 'swallow' });
    socket.write(
      Buffer.concat([1, 2, 3].map((id) => simpleQueryMessage(`insert into entries values (${id})`))),
    );
    await fault.hit;
    await waitFor(async () => (await storedIds()).length === 3, { what: 'all three rows' });
    await waitFor(() => tags() === 1, { what: 'the first answer' });
    fault.release();
    await waitFor(() => tags() === 3, { what: 'the other two answers' });
    expect(fault.hits).toBe(1);
  });

  it('is ended, and what it holds let go, when the faults are cleared', async () => {
    const client = await connectClient();
    const fault = proxy.on('insert', { moment: 'before', action: 'swallow', times: Infinity });
    const held = client.query(unnamed(1));
    await fault.hit;
    proxy.clearFaults();
    await held;
    await client.query(unnamed(2));
    expect([fault.hits, await storedIds()]).toEqual([1, [1, 2]]);
  });

  it('lets go of a statement whose client has left, without forwarding it', async () => {
    const socket = new Socket();
    const client = await connectClient(socket);
    const fault = proxy.on('insert', { moment: 'before', action: 'swallow' });
    const failure = client.query(unnamed(1)).catch((error: unknown) => error);
    await fault.hit;
    socket.destroy();
    expect(await failure).toBeInstanceOf(Error);
    await waitFor(() => proxy.connections === 0 && fault.held === 0, { what: 'the hold to end' });
    expect(await storedIds()).toEqual([]);
  });
});

describe('the proxy as a whole', () => {
  it('cuts all connections', async () => {
    const [first, second] = [await connectClient(), await connectClient()];
    proxy.on('insert', { moment: 'before', action: 'swallow' });
    const held = first.query(unnamed(1));
    const failure = held.catch((error: unknown) => error);
    proxy.cutAll();
    expect(await failure).toBeInstanceOf(Error);
    await expect(second.query('select 1')).rejects.toThrow(
      /ECONNRESET|terminated|not queryable|connection error/,
    );
    expect(proxy.connections).toBe(0);
  });

  it('as a black hole passes nothing, and afterwards everything', async () => {
    const client = await connectClient();
    proxy.blackhole(true);
    let answered = false;
    const waiting = client.query(unnamed(1)).finally(() => (answered = true));
    const late = connectClient();
    await waitFor(() => proxy.connections === 2, { what: 'the second connection to be accepted' });
    expect(await storedIds()).toEqual([]);
    expect(answered).toBe(false);
    proxy.blackhole(false);
    await waiting;
    await (await late).query(unnamed(2));
    expect(await storedIds()).toEqual([1, 2]);
  });

  it('as a black hole hides from the server that a client has left', async () => {
    const socket = new Socket();
    const client = await connectClient(socket);
    await client.query('select 1');
    proxy.blackhole(true);
    socket.destroy();
    await database.pool.query('select 1');
    expect(await backends()).toBe(1);
    proxy.blackhole(false);
    await waitFor(async () => (await backends()) === 0, { what: 'the backend to be gone' });
  });

  it('refuses new connections, keeps open ones, and accepts again', async () => {
    const client = await connectClient();
    await proxy.refuse(true);
    await expect(connectClient()).rejects.toMatchObject({ code: 'ECONNREFUSED' });
    await client.query(unnamed(1));
    await proxy.refuse(false);
    await (await connectClient()).query(unnamed(2));
    expect(await storedIds()).toEqual([1, 2]);
  });
});
