import net from 'node:net';
import tls from 'node:tls';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { listenOnLoopback } from '../../test/support/listen-on-loopback.js';
import { RX_STUB_TEST_TLS } from '../../test/data/rx-stub-test-tls.js';
import {
  afterThisTest,
  answering,
  openReceiver,
  openSender,
  requestTo,
} from '../../test/support/sender-fixture.js';
import type { OutgoingRequest } from './attempt-result.js';

const LOOPBACK = ['127.0.0.0/8'];
const OK = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok';
const hook = (port: number, changes: Partial<OutgoingRequest> = {}): OutgoingRequest =>
  requestTo(`http://127.0.0.1:${port}/hook`, changes);
const listen = (server: net.Server): Promise<number> => {
  afterThisTest(() => server.close());
  return listenOnLoopback(server);
};

afterEach(() => {
  vi.restoreAllMocks();
});

describe('a connection that waits', () => {
  it('is not used again when its receiver hangs up right behind an answer that does not say so', async () => {
    const receiver = await openReceiver(({ socket }) => socket.end(OK));
    const sender = openSender(LOOPBACK);
    for (let sent = 0; sent < 50; sent += 1)
      expect(await sender.send(hook(receiver.port)), `send ${sent}`).toMatchObject({ status: 200 });
    expect(receiver.opened).toHaveLength(50);
  });

  it.each<[string, (socket: net.Socket) => void]>([
    ['gets bytes that nobody asked for', (socket) => socket.write('HTTP/1.1 408 Timeout\r\n\r\n')],
    ['is closed by its receiver', (socket) => socket.end()],
  ])('is never used again once it %s', async (_what, disturb) => {
    const receiver = await openReceiver(({ socket }) => socket.write(OK));
    const sender = openSender(LOOPBACK);
    expect(await sender.send(hook(receiver.port))).toMatchObject({ status: 200 });
    disturb(receiver.opened[0]!);
    await receiver.untilClosed(1);
    expect(await sender.send(hook(receiver.port))).toMatchObject({ status: 200 });
    expect([receiver.opened.length, receiver.requests.length]).toEqual([2, 2]);
  });

  it.each([
    'connection: close',
    'keep-alive: timeout=1',
    'keep-alive: timeout=0',
    'transfer-encoding: chunked\r\nx: content-length beside chunks',
  ])('is closed at once after an answer with %j', async (field) => {
    const body = field.startsWith('transfer') ? '2\r\nok\r\n0\r\n\r\n' : 'ok';
    const receiver = await openReceiver(({ socket }) =>
      socket.write(`HTTP/1.1 200 OK\r\n${field}\r\ncontent-length: 2\r\n\r\n${body}`),
    );
    const sender = openSender(LOOPBACK);
    expect(await sender.send(hook(receiver.port))).toMatchObject({ status: 200, body: Buffer.from('ok') });
    await receiver.untilClosed(1);
    expect(await sender.send(hook(receiver.port))).toMatchObject({ status: 200 });
    expect(receiver.opened).toHaveLength(2);
  });

  it('is used again whatever connect time a request has', async () => {
    const receiver = await openReceiver(({ socket }) => socket.write(OK));
    const sender = openSender(LOOPBACK);
    await sender.send(hook(receiver.port, { connectTimeoutMs: 1_000 }));
    await sender.send(hook(receiver.port, { connectTimeoutMs: 2_000 }));
    expect(receiver.opened).toHaveLength(1);
  });
});

describe('a request', () => {
  it.each([0, 1, 3_900, 4_096, 4_097, 3_000_000])('of %i bytes arrives as it is', async (length) => {
    const receiver = await openReceiver(({ socket }) => socket.write(OK));
    const body = Buffer.alloc(length, 'waybill ');
    const sender = openSender(LOOPBACK);
    for (let round = 0; round < 2; round += 1) {
      expect(await sender.send(hook(receiver.port, { body }))).toMatchObject({ status: 200 });
    }
    expect(receiver.opened).toHaveLength(1);
    for (const request of receiver.requests) {
      expect(request.subarray(request.indexOf('\r\n\r\n') + 4).equals(body)).toBe(true);
    }
  });

  it('that is answered before it is out has its answer, and its connection carries no other', async () => {
    const opened: net.Socket[] = [];
    let closed: (value: unknown) => void;
    const firstClosed = new Promise((resolve) => (closed = resolve));
    const port = await listen(
      net.createServer((socket) => {
        const isFirst = opened.push(socket) === 1;
        socket.on('error', () => undefined);
        socket.once('data', () => {
          if (!isFirst) return socket.end(OK);
          socket.pause();
          return socket.write('HTTP/1.1 413 Too Large\r\ncontent-length: 0\r\n\r\n');
        });
        if (isFirst) socket.on('close', closed);
      }),
    );
    const sender = openSender(LOOPBACK);
    const body = Buffer.alloc(32 * 1024 * 1024);
    expect(await sender.send(hook(port, { body }))).toMatchObject({ kind: 'response', status: 413 });
    opened[0]!.resume();
    await firstClosed;
    expect(await sender.send(hook(port))).toMatchObject({ status: 200 });
    expect(opened).toHaveLength(2);
  });

  it('adds no listener to its socket', async () => {
    const connect = vi.spyOn(net, 'connect');
    const receiver = await openReceiver(({ socket }) => socket.write(OK));
    const sender = openSender(LOOPBACK);
    await sender.send(hook(receiver.port));
    const socket = connect.mock.results[0]!.value as net.Socket;
    const countListeners = (): number[] =>
      socket.eventNames().map((name) => socket.listenerCount(name as string));
    const before = countListeners();
    for (let round = 0; round < 20; round += 1) await sender.send(hook(receiver.port));
    expect(connect).toHaveBeenCalledTimes(1);
    expect(countListeners()).toEqual(before);
  });
});

describe('an answer', () => {
  it('whose body ends with the connection is whole', async () => {
    const receiver = await openReceiver(({ socket }) => socket.end('HTTP/1.1 200 OK\r\n\r\nuntil the end'));
    expect(await openSender(LOOPBACK).send(hook(receiver.port))).toMatchObject({
      status: 200,
      body: Buffer.from('until the end'),
      bodyTruncated: false,
    });
  });

  it('that comes in pieces between those of another is not mixed up with it', async () => {
    const sockets: net.Socket[] = [];
    const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
    const receiver = await openReceiver(({ socket }) => {
      if (sockets.push(socket) < 2) return;
      void (async () => {
        for (const part of [
          'HTTP/1.1 200 OK\r\nloca',
          'tion: /@\r\nconte',
          'nt-length: 6\r\n\r\n@@',
          '@@@@',
        ]) {
          for (const [index, each] of sockets.entries()) {
            each.write(part.replaceAll('@', String(index)));
            await turn();
            await turn();
          }
        }
      })();
    });
    const sender = openSender(LOOPBACK);
    const results = await Promise.all([sender.send(hook(receiver.port)), sender.send(hook(receiver.port))]);
    const ofSocket = (index: number): object => ({
      location: `/${index}`,
      body: Buffer.alloc(6, String(index)),
    });
    const first = String(receiver.opened.indexOf(sockets[0]!));
    expect(results).toMatchObject(first === '0' ? [ofSocket(0), ofSocket(1)] : [ofSocket(1), ofSocket(0)]);
  });

  it('that comes before the question is none', async () => {
    const port = await listen(
      net.createServer((socket) => {
        socket.on('error', () => undefined);
        socket.write('220 mail.stub.test ESMTP\r\n');
      }),
    );
    expect(await openSender(LOOPBACK).send(hook(port))).toMatchObject({
      error: 'protocol_error',
      sent: true,
    });
  });
});

describe('the roads to a receiver', () => {
  it('reads over the second address when the first refuses', async () => {
    const receiver = await openReceiver(({ socket }) => socket.write(OK));
    const sender = openSender(LOOPBACK, answering(['127.0.0.2', '127.0.0.1']));
    for (let round = 0; round < 2; round += 1) {
      expect(await sender.send(requestTo(`http://rx.stub.test:${receiver.port}/`))).toMatchObject({
        status: 200,
        body: Buffer.from('ok'),
      });
    }
    expect(receiver.opened).toHaveLength(1);
  });

  it('uses a TLS connection again, and closes it when it gets what nobody asked for', async () => {
    const opened: tls.TLSSocket[] = [];
    let closed: (value: unknown) => void;
    const firstClosed = new Promise((resolve) => (closed = resolve));
    const received: Buffer[] = [];
    const server = tls.createServer({ ...RX_STUB_TEST_TLS }, (socket) => {
      if (opened.push(socket) === 1) socket.on('close', closed);
      socket.on('error', () => undefined);
      socket.on('data', (chunk) => {
        received.push(chunk);
        if (String(chunk).endsWith('{}')) socket.write(OK);
      });
    });
    const port = await listen(server);
    const sender = openSender(['127.0.0.1'], answering(['127.0.0.1']), {
      certificateAuthorities: RX_STUB_TEST_TLS.cert,
    });
    const send = () => sender.send(requestTo(`https://rx.stub.test:${port}/`));
    for (let round = 0; round < 3; round += 1)
      expect(await send()).toMatchObject({ status: 200, body: Buffer.from('ok') });
    expect(opened).toHaveLength(1);
    opened[0]!.write('more');
    await firstClosed;
    expect(await send()).toMatchObject({ status: 200 });
    expect(opened).toHaveLength(2);
  });
});
