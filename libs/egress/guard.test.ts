import { readFileSync } from 'node:fs';
import net from 'node:net';
import os from 'node:os';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { answering, openReceiver, openSender, requestTo } from '../../test/support/sender-fixture.js';
import type { Lookup } from './dns-lookup.js';

const OK = 'HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok';

afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
});

const failing = (code: string): Lookup => {
  return () => Promise.reject(Object.assign(new Error(code), { code }));
};
/** Stands in for every socket of the process, so that not even a broken guard could send a packet. */
const forbidSockets = () =>
  vi.spyOn(net.Socket.prototype, 'connect').mockImplementation(function refuse(this: net.Socket) {
    process.nextTick(() => this.destroy(new Error('no socket may be opened here')));
    return this;
  });

const blockedUrls = readFileSync(new URL('../../test/data/ssrf-urls.tsv', import.meta.url), 'utf8')
  .split('\n')
  .map((line) => line.split('\t'))
  .filter((cells) => cells[1] === 'BLOCK')
  .map((cells) => cells[0] ?? '');
const stubAnswers: Record<string, Lookup> = {
  '127.0.0.1.nip.io': answering(['127.0.0.1']),
  '169.254.169.254.nip.io': answering(['169.254.169.254']),
  '7f000001.7f000001.rbndr.us': answering(['127.0.0.1']),
  'a.stub.test': answering(['127.0.0.1']),
  'a10.stub.test': answering(['10.0.0.1']),
  'zero.stub.test': answering(['0.0.0.0']),
  'aaaa.stub.test': answering(['::1']),
  'nat64.stub.test': answering(['64:ff9b::7f00:1']),
  'sixtofour.stub.test': answering(['2002:7f00:1::']),
  'meta6.stub.test': answering(['fd00:ec2::254']),
  'azure.stub.test': answering(['168.63.129.16']),
  'mixed.stub.test': answering(['11.0.0.1', '127.0.0.1']),
  'cname.stub.test': answering(['127.0.0.1', '::1']),
  'rebind.stub.test': answering(['127.0.0.1']),
  'flip-after-create.stub.test': answering(['10.0.0.1']),
  'empty.stub.test': answering([]),
  'slow.stub.test': () => new Promise(() => undefined),
  'many.stub.test': answering(
    Array.from({ length: 1_000 }, (_, index) => `11.0.${index >> 8}.${index & 255}`),
  ),
};
const expectedErrors: Record<string, string> = {
  'empty.stub.test': 'dns_notfound',
  'slow.stub.test': 'dns_timeout',
};
const byLookup = blockedUrls.filter((url) => new URL(url).hostname !== 'ok.stub.test');

describe('names that lead to forbidden addresses', () => {
  it('[H13] covers every BLOCK row of the table', () => {
    expect(blockedUrls).toHaveLength(20);
    expect(byLookup.map((url) => new URL(url).hostname).toSorted()).toEqual(
      Object.keys(stubAnswers).toSorted(),
    );
  });

  it.each(byLookup)('[H13] [row 65] opens no socket for %s', async (url) => {
    const connect = forbidSockets();
    const { hostname } = new URL(url);
    const sender = openSender(
      [],
      (host) => stubAnswers[host]?.(host) ?? Promise.reject(new Error('unexpected name')),
    );
    const result = await sender.send(requestTo(url, { connectTimeoutMs: 500 }));
    expect(result).toMatchObject({
      kind: 'failure',
      error: expectedErrors[hostname] ?? 'egress_blocked',
      sent: false,
      message: expect.not.stringMatching(/\d+\.\d+\.\d+\.\d+|::/),
    });
    expect(connect).not.toHaveBeenCalled();
  });

  it('[H13] sends a public answer to the socket layer, so the spy above can fail', async () => {
    const connect = forbidSockets();
    const sender = openSender([], answering(['11.0.0.1']));
    expect(await sender.send(requestTo('http://ok.stub.test/'))).toMatchObject({
      error: 'network_error',
      sent: false,
    });
    expect(connect).toHaveBeenCalledTimes(1);
  });

  it.each(['http://127.0.0.1/', 'http://[::ffff:7f00:1]/', 'http://localhost/', 'http://[::1]/'])(
    '[H14] opens no socket for the stored URL %s',
    async (url) => {
      const connect = forbidSockets();
      expect(await openSender([], answering(['127.0.0.1'])).send(requestTo(url))).toMatchObject({
        error: 'egress_blocked',
        sent: false,
      });
      expect(connect).not.toHaveBeenCalled();
    },
  );

  it.each([
    ['127.0.0.2', '127.0.0.1'],
    ['127.0.0.1', '127.0.0.2'],
    ['127.0.0.2', 'nonsense'],
  ])('[H12] refuses the mixed answer %s, %s without touching either', async (...answers) => {
    const canary = await openReceiver(({ socket }) => socket.write(OK), '0.0.0.0');
    const sender = openSender([`127.0.0.2:${canary.port}`], answering(answers));
    const result = await sender.send(requestTo(`http://rx.stub.test:${canary.port}/`));
    expect(result).toMatchObject({ error: 'egress_blocked', sent: false });
    expect(canary.opened).toHaveLength(0);
  });

  it('[H12] judges each lookup anew when a name flips between attempts', async () => {
    const reached: unknown[] = [];
    const receiver = await openReceiver(({ socket }) => {
      reached.push(socket.localAddress);
      socket.end(OK);
    }, '0.0.0.0');
    const sender = openSender(
      [`127.0.0.2:${receiver.port}`],
      answering(['127.0.0.2'], ['127.0.0.1'], ['127.0.0.2']),
    );
    const send = () => sender.send(requestTo(`http://rx.stub.test:${receiver.port}/`));
    expect(await send()).toMatchObject({ kind: 'response', status: 200 });
    await receiver.untilClosed(1);
    expect(await send()).toMatchObject({ error: 'egress_blocked', sent: false });
    expect(await send()).toMatchObject({ kind: 'response', status: 200 });
    expect(reached).toEqual(['127.0.0.2', '127.0.0.2']);
    expect(receiver.opened).toHaveLength(2);
    expect(String(receiver.requests[0])).toContain(`host: rx.stub.test:${receiver.port}\r\n`);
  });

  it('[H12] writes no byte to a peer that is not what was judged', async () => {
    const receiver = await openReceiver(({ socket }) => socket.write(OK));
    const sender = openSender([`127.0.0.2:${receiver.port}`], answering(['127.0.0.2']));
    vi.spyOn(net, 'connect').mockImplementation(() => new net.Socket().connect(receiver.port, '127.0.0.1'));
    const result = await sender.send(requestTo(`http://rx.stub.test:${receiver.port}/`));
    expect(result).toMatchObject({ error: 'egress_blocked', sent: false });
    await receiver.untilClosed(1);
    expect(receiver.opened.map((socket) => socket.bytesRead)).toEqual([0]);
  });

  it('refuses a public address of this very machine, unless it is listed', async () => {
    const connect = forbidSockets();
    const entry = {
      address: '11.9.9.9',
      netmask: '255.0.0.0',
      family: 'IPv4' as const,
      mac: '',
      internal: false,
    };
    vi.spyOn(os, 'networkInterfaces').mockReturnValue({ eth0: [{ ...entry, cidr: null }] });
    const soon = performance.now() + 61_000; // the list is read anew when a minute old
    vi.spyOn(performance, 'now').mockReturnValue(soon);
    const request = requestTo('http://self.stub.test/');
    const result = await openSender([], answering(['11.9.9.9'])).send(request);
    expect(result).toMatchObject({ error: 'egress_blocked', sent: false });
    expect(connect).not.toHaveBeenCalled();
    await openSender(['11.9.9.9'], answering(['11.9.9.9'])).send(request);
    expect(connect).toHaveBeenCalledTimes(1);
  });

  it('tries the next address of a name when one refuses', async () => {
    const receiver = await openReceiver(({ socket }) => socket.write(OK), '127.0.0.3');
    const sender = openSender(['127.0.0.0/8'], answering(['127.0.0.2', '127.0.0.3']));
    expect(await sender.send(requestTo(`http://rx.stub.test:${receiver.port}/`))).toMatchObject({
      status: 200,
    });
  });
});

describe('redirects and proxies', () => {
  it('[H13] [row 35] does not follow a 307 of an allowed receiver to a loopback port', async () => {
    const canary = await openReceiver(({ socket }) => socket.write(OK));
    const receiver = await openReceiver(({ socket }) =>
      socket.end(`HTTP/1.1 307 X\r\nlocation: http://127.0.0.1:${canary.port}/\r\ncontent-length: 0\r\n\r\n`),
    );
    const sender = openSender([`127.0.0.1:${receiver.port}`], answering(['127.0.0.1']));
    const result = await sender.send(requestTo(`http://ok.stub.test:${receiver.port}/redir307`));
    expect(result).toMatchObject({ kind: 'response', status: 307 });
    expect(canary.opened).toHaveLength(0);
  });

  it('[H13] takes no proxy from the environment', async () => {
    const proxy = await openReceiver(({ socket }) => socket.write(OK));
    const receiver = await openReceiver(({ socket }) => socket.write(OK));
    for (const name of ['HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY', 'http_proxy', 'https_proxy', 'all_proxy']) {
      vi.stubEnv(name, `http://127.0.0.1:${proxy.port}`);
    }
    const sender = openSender(['127.0.0.1'], answering(['127.0.0.1']));
    const result = await sender.send(requestTo(`http://ok.stub.test:${receiver.port}/env-proxy`));
    expect(result).toMatchObject({ kind: 'response', status: 200 });
    expect(receiver.requests).toHaveLength(1);
    expect(proxy.opened).toHaveLength(0);
  });
});

describe('failing lookups', () => {
  it.each([
    ['ENOTFOUND', 'dns_notfound'],
    ['ENODATA', 'dns_notfound'],
    ['ESERVFAIL', 'dns_servfail'],
    ['EAI_AGAIN', 'dns_servfail'],
    ['EREFUSED', 'dns_servfail'],
    ['ETIMEOUT', 'dns_timeout'],
  ])('[H03] reports %s as %s and opens no socket', async (code, error) => {
    const connect = forbidSockets();
    expect(await openSender([], failing(code)).send(requestTo('http://rx.stub.test/'))).toMatchObject({
      kind: 'failure',
      error,
      sent: false,
    });
    expect(connect).not.toHaveBeenCalled();
  });

  it('[H03] counts the lookup inside the total deadline', async () => {
    const sender = openSender([], () => new Promise(() => undefined));
    const result = await sender.send(requestTo('http://rx.stub.test/', { totalTimeoutMs: 500 }));
    expect(result).toMatchObject({ kind: 'failure', error: 'timeout', sent: false });
    expect(result.durationMs).toBeLessThan(3_000);
  });

  it('sends again once the name resolves', async () => {
    const receiver = await openReceiver(({ socket }) => socket.write(OK));
    let calls = 0;
    const sender = openSender(['127.0.0.1'], (host) =>
      (calls++ === 0 ? failing('ESERVFAIL') : answering(['127.0.0.1']))(host),
    );
    const request = requestTo(`http://rx.stub.test:${receiver.port}/`);
    expect(await sender.send(request)).toMatchObject({ error: 'dns_servfail' });
    expect(await sender.send(request)).toMatchObject({ status: 200 });
  });
});
