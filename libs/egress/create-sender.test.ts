import net from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { startRawReceiver, type RawReceiver, type RawRequest } from '../../test/support/raw-receiver.js';
import type { AttemptResult, OutgoingRequest } from './attempt-result.js';
import { createSender, type Sender, type SenderOptions } from './create-sender.js';
import { parseEgressPolicy } from './parse-egress-policy.js';

const policy = parseEgressPolicy({ allow: ['127.0.0.0/8', 'localhost'], deny: [], allowHttp: true });
const OK = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok';
const cleanups: (() => unknown)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
});

const openSender = (options: Partial<SenderOptions> = {}): Sender => {
  const sender = createSender({ policy, ...options });
  cleanups.push(() => sender.close());
  return sender;
};
const openReceiver = async (answer: (request: RawRequest) => void): Promise<RawReceiver> => {
  const receiver = await startRawReceiver(answer);
  cleanups.push(() => receiver.close());
  return receiver;
};
const requestTo = (port: number, changes: Partial<OutgoingRequest> = {}): OutgoingRequest => ({
  tenantId: 'tnt_1',
  url: `http://127.0.0.1:${port}/hook?a=%20b`,
  headers: [['content-type', 'application/json']],
  body: Buffer.from('{}'),
  connectTimeoutMs: 5_000,
  totalTimeoutMs: 10_000,
  ...changes,
});
/** Sends once to a receiver that answers with these bytes, and hangs up when told to. */
const answerWith = async (answer: string | Buffer, hangUp = false): Promise<AttemptResult> => {
  const receiver = await openReceiver(({ socket }) => (hangUp ? socket.end(answer) : socket.write(answer)));
  return openSender().send(requestTo(receiver.port, { totalTimeoutMs: 2_000 }));
};

describe('send', () => {
  it('puts exactly these headers and bytes on the wire and gives back the response', async () => {
    const receiver = await openReceiver(({ socket }) => socket.write(OK));
    const body = Buffer.from([0x7b, 0xff, 0x00, 0x7d]);
    const headers = [['webhook-id', 'dlv_1'] as const, ['X-Custom', 'a b'] as const];
    const result = await openSender().send(requestTo(receiver.port, { headers, body }));
    expect(result).toEqual({
      kind: 'response',
      status: 200,
      retryAfter: null,
      location: null,
      body: Buffer.from('ok'),
      bodyTruncated: false,
      durationMs: expect.any(Number),
    });
    const head = `POST /hook?a=%20b HTTP/1.1\r\nhost: 127.0.0.1:${receiver.port}\r\nconnection: keep-alive\r\n`;
    const rest =
      'accept-encoding: identity\r\nwebhook-id: dlv_1\r\nX-Custom: a b\r\ncontent-length: 4\r\n\r\n';
    expect(receiver.requests).toEqual([Buffer.concat([Buffer.from(head + rest), body])]);
  });

  it('sends an empty body', async () => {
    const receiver = await openReceiver(({ socket }) => socket.write(OK));
    await openSender().send(requestTo(receiver.port, { body: new Uint8Array(0) }));
    expect(String(receiver.requests[0])).toContain('content-length: 0\r\n');
  });

  it('uses a connection again for the same tenant and origin only', async () => {
    const receiver = await openReceiver(({ socket }) => socket.write(OK));
    const sender = openSender();
    await sender.send(requestTo(receiver.port));
    await sender.send(requestTo(receiver.port, { url: `http://127.0.0.1:${receiver.port}/other` }));
    expect(receiver.opened).toHaveLength(1);
    await sender.send(requestTo(receiver.port, { tenantId: 'tnt_2' }));
    expect(receiver.opened).toHaveLength(2);
  });

  it('opens a connection for each of many sends at once', async () => {
    const receiver = await openReceiver(({ index }) => {
      if (index === 49) for (const socket of receiver.opened) socket.write(OK);
    });
    const sender = openSender();
    const results = await Promise.all(
      Array.from({ length: 50 }, () => sender.send(requestTo(receiver.port))),
    );
    expect(results.every((result) => result.kind === 'response')).toBe(true);
    expect(receiver.opened).toHaveLength(50);
  });

  it('connects again when the receiver has closed a kept connection', async () => {
    const receiver = await openReceiver(({ socket }) =>
      socket.end(OK.replace('\r\n', '\r\nconnection: close\r\n')),
    );
    const sender = openSender();
    for (let round = 1; round <= 3; round += 1) {
      expect(await sender.send(requestTo(receiver.port))).toMatchObject({ kind: 'response', status: 200 });
      await receiver.untilClosed(round);
    }
    expect(receiver.opened).toHaveLength(3);
  });

  it('does not take a second response that nobody asked for as the answer to the next request', async () => {
    const receiver = await openReceiver(({ socket, index }) =>
      socket.write(index === 0 ? `${OK}HTTP/1.1 201 Created\r\ncontent-length: 0\r\n\r\n` : OK),
    );
    const sender = openSender();
    expect(await sender.send(requestTo(receiver.port))).toMatchObject({ status: 200 });
    expect(await sender.send(requestTo(receiver.port))).toMatchObject({ status: 200 });
  });
});

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
    const result = await openSender().send(requestTo(receiver.port));
    expect(result).toMatchObject({ kind: 'response', status: 200, bodyTruncated: true });
    expect(String('body' in result && result.body)).toBe('€'.repeat(166));
    await receiver.untilClosed(1);
  });

  it('reads a body of exactly the limit and uses the connection again', async () => {
    const receiver = await openReceiver(({ socket }) =>
      socket.write(`HTTP/1.1 200 OK\r\ncontent-length: 65536\r\n\r\n${'x'.repeat(65_536)}`),
    );
    const sender = openSender();
    for (let round = 0; round < 2; round += 1) {
      const result = await sender.send(requestTo(receiver.port));
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
    const result = await openSender().send(requestTo(receiver.port));
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

describe('the total deadline', () => {
  const drip = (socket: net.Socket, text: string): void => {
    const timer = setInterval(() => socket.write(text), 100);
    socket.on('close', () => clearInterval(timer));
  };
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
      const sender = openSender();
      const result = await sender.send(requestTo(receiver.port, { totalTimeoutMs: 600 }));
      expect(result).toMatchObject(wanted);
      expect(result.durationMs).toBeGreaterThan(550);
      expect(result.durationMs).toBeLessThan(3_000);
      await receiver.untilClosed(1);
      // No connection was made again for the request that was given up.
      expect(await sender.send(requestTo(receiver.port))).toMatchObject({ status: 200 });
      expect(receiver.opened).toHaveLength(2);
      expect(receiver.requests).toHaveLength(2);
    },
  );
});

describe('broken protocols', () => {
  it.each([
    ['status 099', 'HTTP/1.1 099 X\r\ncontent-length: 0\r\n\r\n'],
    ['an unasked 100', 'HTTP/1.1 100 Continue\r\n\r\n'],
    ['an unasked 101', 'HTTP/1.1 101 X\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n'],
    ['two lengths', 'HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab'],
    [
      'length and chunks',
      'HTTP/1.1 200 OK\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n',
    ],
    ['HTTP/0.9', '<html>hello</html>'],
    ['line feeds only', 'HTTP/1.1 200 OK\ncontent-length: 0\n\n'],
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
    const sender = openSender();
    expect(await sender.send(requestTo(receiver.port))).toMatchObject({
      error: 'connection_reset',
      sent: true,
    });
    await receiver.close();
    expect(await sender.send(requestTo(receiver.port))).toMatchObject({
      error: 'connection_refused',
      sent: false,
    });
  });
});

describe('requests that cannot be sent', () => {
  it.each<[string, Partial<OutgoingRequest>]>([
    ['a header value with a line break', { headers: [['x-a', 'a\r\nx-evil: 1']] }],
    ['a header value outside latin1', { headers: [['x-a', '日本']] }],
    ['a header name with a space', { headers: [['x y', 'a']] }],
    ['an empty header name', { headers: [['', 'a']] }],
    ['a host header', { headers: [['Host', 'example.com']] }],
    ['a length header', { headers: [['content-length', '7']] }],
    ['an expect header', { headers: [['Expect', '100-continue']] }],
    ['no URL at all', { url: 'nonsense' }],
    ['another scheme', { url: 'ftp://example.com/' }],
  ])('[row 38] calls %s unsendable and leaves its batch mates alone', async (_what, changes) => {
    const receiver = await openReceiver(({ socket }) => socket.write(OK));
    const sender = openSender();
    const mates = [requestTo(receiver.port), requestTo(receiver.port, changes), requestTo(receiver.port)];
    const [first, broken, last] = await Promise.all(mates.map((mate) => sender.send(mate)));
    expect(broken).toMatchObject({ kind: 'failure', error: 'unsendable', sent: false });
    expect([first, last]).toMatchObject([{ status: 200 }, { status: 200 }]);
    expect(receiver.requests).toHaveLength(2);
  });

  it.each([22, 0, 65_536])('[row 40] fails only the delivery whose stored URL has port %i', async (port) => {
    const receiver = await openReceiver(({ socket }) => socket.write(OK));
    const sender = openSender();
    expect(await sender.send(requestTo(port))).toMatchObject({
      kind: 'failure',
      error: 'unsendable',
      sent: false,
    });
    expect(await sender.send(requestTo(receiver.port))).toMatchObject({ status: 200 });
  });
});

describe('giving up', () => {
  it('ends what a signal stops, and starts nothing after it', async () => {
    const receiver = await openReceiver(() => controller.abort());
    const controller = new AbortController();
    const sender = openSender();
    const both = [
      sender.send(requestTo(receiver.port), controller.signal),
      sender.send(requestTo(1), controller.signal),
    ];
    expect(await Promise.all(both)).toMatchObject([{ error: 'aborted', sent: true }, { kind: 'failure' }]);
    await receiver.untilClosed(1);
    expect(await sender.send(requestTo(receiver.port), controller.signal)).toMatchObject({
      error: 'aborted',
      sent: false,
    });
    expect(receiver.opened).toHaveLength(1);
  });

  it('closes idle connections and ends what is in flight when the sender is closed', async () => {
    const receiver = await openReceiver(({ socket, index }) => {
      if (index === 0) socket.write(OK);
      else sender.close();
    });
    const sender = openSender();
    await sender.send(requestTo(receiver.port));
    const hanging = sender.send(requestTo(receiver.port));
    expect(await hanging).toMatchObject({ kind: 'failure', error: 'aborted' });
    await receiver.untilClosed(1);
    expect(await sender.send(requestTo(receiver.port))).toMatchObject({ error: 'aborted', sent: false });
  });
});
