import { Socket } from 'node:net';

import { describe, expect, it } from 'vitest';

import { named, ProxiedEntries, simple, unnamed } from './proxied-entries.js';
import { waitFor } from './wait-for.js';

const entries = new ProxiedEntries();

function simpleQueryMessage(sql: string): Buffer {
  const message = Buffer.from(`Q\0\0\0\0${sql}\0`);
  message.writeUInt32BE(message.length - 1, 1);
  return message;
}

describe.each(Object.entries({ simple, unnamed, named }))('a fault at a %s statement', (_kind, insert) => {
  it('before + cut: the row is absent and the client sees an error', async () => {
    const client = await entries.connectClient();
    await client.query(insert(1));
    const fault = entries.proxy.on('insert into entries', { moment: 'before', action: 'cut' });
    await expect(client.query(insert(2))).rejects.toThrow(/ECONNRESET|terminated/);
    expect(fault.hits).toBe(1);
    await waitFor(async () => (await entries.backends()) === 0, { what: 'the backend to be gone' });
    expect(await entries.storedIds()).toEqual([1]);
  });

  it('after + cut: the row is present and the client sees an error', async () => {
    const client = await entries.connectClient();
    await client.query(insert(1));
    const fault = entries.proxy.on(/INSERT into/i, { moment: 'after', action: 'cut' });
    await expect(client.query(insert(2))).rejects.toThrow(/ECONNRESET|terminated/);
    expect(fault.hits).toBe(1);
    expect(await entries.storedIds()).toEqual([1, 2]);
  });

  it('swallow before: nothing reaches the server until the release, then all goes on', async () => {
    const client = await entries.connectClient();
    await client.query(insert(1));
    const fault = entries.proxy.on('insert', { moment: 'before', action: 'swallow' });
    const held = client.query(insert(2));
    await fault.hit;
    expect(fault.held).toBe(1);
    expect(entries.proxy.statements.size).toBe(1);
    expect(await entries.storedIds()).toEqual([1]);
    fault.release();
    await held;
    await client.query(insert(3));
    expect(await entries.storedIds()).toEqual([1, 2, 3]);
    expect(fault).toMatchObject({ hits: 1, held: 0 });
  });

  it('swallow after: the row is there while the client still waits, and the answer arrives whole', async () => {
    const client = await entries.connectClient();
    await client.query(insert(1));
    const fault = entries.proxy.on('insert', { moment: 'after', action: 'swallow' });
    let answered = false;
    const held = client.query(insert(2)).finally(() => (answered = true));
    await fault.hit;
    expect(await entries.storedIds()).toEqual([1, 2]);
    expect(answered).toBe(false);
    fault.release();
    expect((await held).rowCount).toBe(1);
  });

  it('counts one execution once and fires as often as it was told, then leaves the next fault its turn', async () => {
    const client = await entries.connectClient();
    const first = entries.proxy.on('insert', { moment: 'before', action: 'release', times: 3 });
    const second = entries.proxy.on('insert', { moment: 'before', action: 'release', times: Infinity });
    const after = entries.proxy.on('insert', { moment: 'after', action: 'release', times: Infinity });
    for (const id of [1, 2, 3, 4, 5]) await client.query(insert(id));
    expect([first.hits, second.hits, after.hits]).toEqual([3, 2, 5]);
    expect(first.statements[2]).toContain('insert into entries');
    expect(await entries.storedIds()).toHaveLength(5);
  });
});

describe('a fault', () => {
  it('that never matches reports no hits and changes nothing', async () => {
    const client = await entries.connectClient();
    const fault = entries.proxy.on('delete from entries', { moment: 'before', action: 'cut' });
    const late = entries.proxy.on('delete from entries', { moment: 'after', action: 'cut' });
    await client.query(named(1));
    expect([fault.hits, late.hits]).toEqual([0, 0]);
    expect(await entries.storedIds()).toEqual([1]);
  });

  it('at COMMIT, after it, loses the reply of a transaction that is durable', async () => {
    const client = await entries.connectClient();
    const fault = entries.proxy.on(/^commit$/i, { moment: 'after', action: 'cut' });
    await client.query('begin');
    await client.query(named(1));
    await expect(client.query('commit')).rejects.toThrow(/ECONNRESET|terminated/);
    expect(fault.hits).toBe(1);
    expect(await entries.storedIds()).toEqual([1]);
  });

  it('at COMMIT, before it, leaves nothing of the transaction', async () => {
    const client = await entries.connectClient();
    entries.proxy.on(/^commit$/i, { moment: 'before', action: 'cut' });
    await client.query('begin');
    await client.query(named(1));
    await expect(client.query('commit')).rejects.toThrow(/ECONNRESET|terminated/);
    await waitFor(async () => (await entries.backends()) === 0, { what: 'the backend to be gone' });
    expect(await entries.storedIds()).toEqual([]);
  });

  it('runs a function at its moment and cuts only when that has ended', async () => {
    const client = await entries.connectClient();
    let idsSeen: number[] = [];
    const fault = entries.proxy.on('insert', {
      moment: 'after',
      action: {
        run: async () => {
          idsSeen = await entries.storedIds();
        },
      },
    });
    await expect(client.query(unnamed(7))).rejects.toThrow(/ECONNRESET|terminated/);
    await fault.hit;
    expect(idsSeen).toEqual([7]);
  });

  it('delays a statement by the time it was given', async () => {
    const client = await entries.connectClient();
    entries.proxy.on('insert', { moment: 'before', action: { delayMs: 600 } });
    const start = performance.now();
    await client.query(unnamed(1));
    expect(performance.now() - start).toBeGreaterThan(590);
  });

  it('that was removed fires no more, and holds what it holds until its release', async () => {
    const [first, second] = [await entries.connectClient(), await entries.connectClient()];
    const fault = entries.proxy.on('insert', { moment: 'before', action: 'swallow', times: Infinity });
    const held = first.query(unnamed(1));
    await fault.hit;
    fault.remove();
    await second.query(unnamed(2));
    expect(await entries.storedIds()).toEqual([2]);
    fault.release();
    await held;
    expect(fault.hits).toBe(1);
  });

  it('finds its statement among pipelined ones and passes what was answered before it', async () => {
    const socket = new Socket();
    await entries.connectClient(socket);
    const chunks: Buffer[] = [];
    socket.on('data', (chunk: Buffer) => chunks.push(chunk));
    const tags = (): number => Buffer.concat(chunks).toString('latin1').split('INSERT 0 1').length - 1;
    const fault = entries.proxy.on('values (2)', { moment: 'after', action: 'swallow' });
    socket.write(
      Buffer.concat([1, 2, 3].map((id) => simpleQueryMessage(`insert into entries values (${id})`))),
    );
    await fault.hit;
    await waitFor(async () => (await entries.storedIds()).length === 3, { what: 'all three rows' });
    await waitFor(() => tags() === 1, { what: 'the first answer' });
    fault.release();
    await waitFor(() => tags() === 3, { what: 'the other two answers' });
    expect(fault.hits).toBe(1);
  });

  it('is ended, and what it holds let go, when the faults are cleared', async () => {
    const client = await entries.connectClient();
    const fault = entries.proxy.on('insert', { moment: 'before', action: 'swallow', times: Infinity });
    const held = client.query(unnamed(1));
    await fault.hit;
    entries.proxy.clearFaults();
    await held;
    await client.query(unnamed(2));
    expect([fault.hits, await entries.storedIds()]).toEqual([1, [1, 2]]);
  });

  it('lets go of a statement whose client has left, without forwarding it', async () => {
    const socket = new Socket();
    const client = await entries.connectClient(socket);
    const fault = entries.proxy.on('insert', { moment: 'before', action: 'swallow' });
    const failure = client.query(unnamed(1)).catch((error: unknown) => error);
    await fault.hit;
    socket.destroy();
    expect(await failure).toBeInstanceOf(Error);
    await waitFor(() => entries.proxy.connections === 0 && fault.held === 0, { what: 'the hold to end' });
    expect(await entries.storedIds()).toEqual([]);
  });
});
