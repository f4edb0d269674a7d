import type net from 'node:net';
import { describe, expect, it } from 'vitest';
import type { RawRequest } from '../../test/support/raw-receiver.js';
import { openReceiver, openSender, requestTo } from '../../test/support/sender-fixture.js';
import type { AttemptResult, OutgoingRequest } from './attempt-result.js';

const LOOPBACK = ['127.0.0.0/8'];
const OK = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok';
const hook = (port: number, changes: Partial<OutgoingRequest> = {}): OutgoingRequest =>
  requestTo(`http://127.0.0.1:${port}/hook?a=%20b`, changes);
/** Sends once to a receiver that answers with these bytes, and hangs up when told to. */
const answerWith = async (answer: string | Buffer, hangUp = false): Promise<AttemptResult> => {
  const receiver = await openReceiver(({ socket }) => (hangUp ? socket.end(answer) : socket.write(answer)));
  return openSender(LOOPBACK).send(hook(receiver.port, { totalTimeoutMs: 2_000 }));
};
const drip = (socket: net.Socket, text: string): void => {
  const timer = setInterval(() => socket.write(text), 100);
  socket.on('close', () => clearInterval(timer));
};

describe('responses that are no delivery', () => {
  it.each([300, 301, 302, 303, 304, 307, 308])('[row 35] [H06] does not follow a %i', async (status) => {
    const canary = await openReceiver(({ socket }) => socket.write(OK));
    const location = `http://127.0.0.1:${canary.port}/`;
    const result = await answerWith(
      `HTTP/1.1 ${status} X\r\nLocation: ${location}\r\ncontent-length: 0\r\n\r\n`,
    );
    expect(result).toMatchObject({ kind: 'response', status, location });
    expect(canary.opened).toHaveLength(0);
  });

  it.each(['http://169.254.169.254/', 'file:///etc/passwd', ''])(
    '[H06] keeps Location %j as text only',
    async (location) => {
      const result = await answerWith(`HTTP/1.1 302 X\r\nLocation: ${location}\r\ncontent-length: 0\r\n\r\n`);
      expect(result).toMatchObject({ kind: 'response', status: 302, location });
    },
  );

  it('[H06] reports a redirect without Location', async () => {
    const result = await answerWith('HTTP/1.1 302 X\r\ncontent-length: 0\r\n\r\n');
    expect(result).toMatchObject({ kind: 'response', status: 302, location: null });
  });

  it.each([
    ['Retry-After: 2', '2'],
    [`retry-after: ${'9'.repeat(400)}`, '9'.repeat(400)],
    ['RETRY-AFTER: 2\r\nRetry-After: 7', '2, 7'],
    ['Retry-After: a\u00ffb', 'a\ufffdb'],
  ])('hands on the header %s as text', async (header, retryAfter) => {
    const answer = Buffer.from(
      `HTTP/1.1 503 X\r\n${header}\r\n__proto__: x\r\ncontent-length: 0\r\n\r\n`,
      'latin1',
    );
    expect(await answerWith(answer)).toMatchObject({ status: 503, retryAfter });
  });

  it.each([600, 999])('gives back the odd status %i', async (status) => {
    expect(await answerWith(`HTTP/1.1 ${status} X\r\ncontent-length: 0\r\n\r\n`)).toMatchObject({ status });
  });
});

describe('bodies', () => {
  it('[row 37] keeps 500 bytes of a 5 MB body, cut between characters, and stops reading', async () => {
    const receiver = await openReceiver(({ socket }) => {
      socket.write('HTTP/1.1 200 OK\r\ncontent-length: 5242881\r\n\r\n');
      socket.write(Buffer.from('€'.repeat(1_747_627)));
    });
    const result = await openSender(LOOPBACK).send(hook(receiver.port));
    expect(result).toMatchObject({ kind: 'response', status: 200, bodyTruncated: true });
    expect(String('body' in result && result.body)).toBe('€'.repeat(166));
    await receiver.untilClosed(1);
  });

  it('reads a body of exactly the limit and uses the connection again', async () => {
    const receiver = await openReceiver(({ socket }) =>
      socket.write(`HTTP/1.1 200 OK\r\ncontent-length: 65536\r\n\r\n${'x'.repeat(65_536)}`),
    );
    const sender = openSender(LOOPBACK);
    for (let round = 0; round < 2; round += 1) {
      const result = await sender.send(hook(receiver.port));
      expect(result).toMatchObject({ status: 200, bodyTruncated: true, body: Buffer.alloc(500, 'x') });
    }
    expect(receiver.opened).toHaveLength(1);
  });

  it('[H18] ends an endless body at the limit', async () => {
    const receiver = await openReceiver(({ socket }) => {
      socket.write('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n');
      const pour = (): void => {
        while (!socket.destroyed && socket.write(`4000\r\n${'y'.repeat(0x4000)}\r\n`));
      };
      socket.on('drain', pour);
      pour();
    });
    const result = await openSender(LOOPBACK).send(hook(receiver.port));
    expect(result).toMatchObject({
      kind: 'response',
      status: 200,
      bodyTruncated: true,
      body: Buffer.alloc(500, 'y'),
    });
    await receiver.untilClosed(1);
  });

  it.each([
    ['cut short', 'HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc', 200],
    ['with a broken chunk', 'HTTP/1.1 201 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\nzz\r\n', 201],
  ])('takes a 2xx whose body is %s as that status', async (_what, answer, status) => {
    const result = await answerWith(answer, true);
    expect(result).toMatchObject({ kind: 'response', status, bodyTruncated: true, body: Buffer.from('abc') });
  });

  it('takes a 204 with a body as a 204', async () => {
    expect(await answerWith('HTTP/1.1 204 No Content\r\n\r\nbody', true)).toMatchObject({
      kind: 'response',
      status: 204,
    });
  });

  it('does not unpack a compressed body', async () => {
    const answer = 'HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 3\r\n\r\n\u0001\u0002\u0003';
    expect(await answerWith(answer)).toMatchObject({ status: 200, body: Buffer.from([1, 2, 3]) });
  });
});

it.each([
  ['100', 'HTTP/1.1 100 C\r\n\r\n'],
  ['a 103 of folded lines', `HTTP/1.1 103 E\r\nlocation: a\r\n${' b\r\n'.repeat(3_000)}\r\n`],
])('[H18] gives up a receiver that pours out %s without end', async (_what, interim) => {
  let poured = 0;
  const piece = Buffer.from(interim.repeat(Math.ceil(65_536 / interim.length)));
  const receiver = await openReceiver(({ socket }) => {
    const pour = (): void => {
      while (!socket.destroyed && socket.write(piece)) poured += piece.length;
    };
    socket.on('drain', pour);
    pour();
  });
  const result = await openSender(LOOPBACK).send(hook(receiver.port, { totalTimeoutMs: 30_000 }));
  expect(result).toMatchObject({ kind: 'failure', error: 'protocol_error', sent: true });
  await receiver.untilClosed(1);
  // What the kernel takes in, not what 30 s of a socket would be.
  expect(poured).toBeLessThan(64 * 1_048_576);
});

describe('the total deadline', () => {
  const zoo: [string, (request: RawRequest) => void, object][] = [
    ['never answers', () => undefined, { kind: 'failure', error: 'timeout', sent: true }],
    [
      'drips its headers',
      ({ socket }) => {
        socket.write('HTTP/1.1 200 OK\r\nx-drip: ');
        drip(socket, 'a');
      },
      { kind: 'failure', error: 'timeout', sent: true },
    ],
    [
      'floods with 102',
      ({ socket }) => drip(socket, 'HTTP/1.1 102 Processing\r\n\r\n'),
      { error: 'timeout', sent: true },
    ],
    [
      'floods with 103',
      ({ socket }) => drip(socket, 'HTTP/1.1 103 Early\r\nlink: x\r\n\r\n'),
      { error: 'timeout' },
    ],
    [
      'drips its body',
      ({ socket }) => {
        socket.write('HTTP/1.1 200 OK\r\ncontent-length: 99999\r\n\r\n');
        drip(socket, 'b');
      },
      { kind: 'response', status: 200, bodyTruncated: true },
    ],
  ];

  it.each(zoo)(
    '[row 39] [H18] ends an attempt whose receiver %s, and closes its only connection',
    async (_what, answer, wanted) => {
      const receiver = await openReceiver((request) => {
        if (request.index === 0) answer(request);
        else request.socket.write(OK);
      });
      const sender = openSender(LOOPBACK);
      const result = await sender.send(hook(receiver.port, { totalTimeoutMs: 600 }));
      expect(result).toMatchObject(wanted);
      expect(result.durationMs).toBeGreaterThan(550);
      expect(result.durationMs).toBeLessThan(3_000);
      await receiver.untilClosed(1);
      // No connection was made again for the request that was given up.
      expect(await sender.send(hook(receiver.port))).toMatchObject({ status: 200 });
      expect(receiver.opened).toHaveLength(2);
      expect(receiver.requests).toHaveLength(2);
    },
  );
});

describe('odd protocols', () => {
  it.each([
    ['an unasked 100', 'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n'],
    [
      'length and chunks',
      'HTTP/1.1 200 OK\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n',
    ],
    ['line feeds only', 'HTTP/1.1 200 OK\ncontent-length: 0\n\n'],
  ])('[H18] reads the answer behind %s', async (_what, answer) => {
    expect(await answerWith(answer)).toMatchObject({ kind: 'response', status: 200, bodyTruncated: false });
  });
});

describe('broken protocols', () => {
  it.each([
    ['status 099', 'HTTP/1.1 099 X\r\ncontent-length: 0\r\n\r\n'],
    ['an unasked 101', 'HTTP/1.1 101 X\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n'],
    ['two lengths', 'HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab'],
    ['HTTP/0.9', '<html>hello</html>'],
    ['another protocol', 'SSH-2.0-OpenSSH_9.2\r\n'],
  ])('[H18] calls %s a protocol error', async (_what, answer) => {
    expect(await answerWith(answer)).toMatchObject({ kind: 'failure', error: 'protocol_error', sent: true });
  });

  it('[H18] stops at 16 KiB of headers', async () => {
    const answer = `HTTP/1.1 200 OK\r\n${'x-a: b\r\n'.repeat(100_000)}\r\n`;
    expect(await answerWith(answer)).toMatchObject({ kind: 'failure', error: 'headers_overflow' });
  });

  it('[H18] fails when the receiver hangs up after the status line', async () => {
    expect(await answerWith('HTTP/1.1 200 OK\r\n', true)).toMatchObject({
      kind: 'failure',
      error: 'connection_reset',
    });
  });

  it('tells a reset from a refusal', async () => {
    const receiver = await openReceiver(({ socket }) => socket.resetAndDestroy());
    const sender = openSender(LOOPBACK);
    expect(await sender.send(hook(receiver.port))).toMatchObject({
      error: 'connection_reset',
      sent: true,
    });
    await receiver.close();
    expect(await sender.send(hook(receiver.port))).toMatchObject({
      error: 'connection_refused',
      sent: false,
    });
  });
});
