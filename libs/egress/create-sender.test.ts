import { describe, expect, it } from 'vitest';
import { openReceiver, openSender, requestTo } from '../../test/support/sender-fixture.js';
import type { OutgoingRequest } from './attempt-result.js';

const LOOPBACK = ['127.0.0.0/8'];
const OK = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok';
const hook = (port: number, changes: Partial<OutgoingRequest> = {}): OutgoingRequest =>
  requestTo(`http://127.0.0.1:${port}/hook?a=%20b`, changes);

describe('send', () => {
  it('puts exactly these headers and bytes on the wire and gives back the response', async () => {
    const receiver = await openReceiver(({ socket }) => socket.write(OK));
    const body = Buffer.from([0x7b, 0xff, 0x00, 0x7d]);
    const headers = [['webhook-id', 'dlv_1'] as const, ['X-Custom', 'a b'] as const];
    const result = await openSender(LOOPBACK).send(hook(receiver.port, { headers, body }));
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
    await openSender(LOOPBACK).send(hook(receiver.port, { body: new Uint8Array(0) }));
    expect(String(receiver.requests[0])).toContain('content-length: 0\r\n');
  });

  it('uses a connection again for the same tenant and origin only', async () => {
    const receiver = await openReceiver(({ socket }) => socket.write(OK));
    const sender = openSender(LOOPBACK);
    await sender.send(hook(receiver.port));
    await sender.send(hook(receiver.port, { url: `http://127.0.0.1:${receiver.port}/other` }));
    expect(receiver.opened).toHaveLength(1);
    await sender.send(hook(receiver.port, { tenantId: 'tnt_2' }));
    expect(receiver.opened).toHaveLength(2);
  });

  it('opens a connection for each of many sends at once', async () => {
    const receiver = await openReceiver(({ index }) => {
      if (index === 49) for (const socket of receiver.opened) socket.write(OK);
    });
    const sender = openSender(LOOPBACK);
    const results = await Promise.all(Array.from({ length: 50 }, () => sender.send(hook(receiver.port))));
    expect(results.every((result) => result.kind === 'response')).toBe(true);
    expect(receiver.opened).toHaveLength(50);
  });

  it('connects again when the receiver has closed a kept connection', async () => {
    const receiver = await openReceiver(({ socket }) =>
      socket.end(OK.replace('\r\n', '\r\nconnection: close\r\n')),
    );
    const sender = openSender(LOOPBACK);
    for (let round = 1; round <= 3; round += 1) {
      expect(await sender.send(hook(receiver.port))).toMatchObject({ kind: 'response', status: 200 });
      await receiver.untilClosed(round);
    }
    expect(receiver.opened).toHaveLength(3);
  });

  it('does not take a second response that nobody asked for as the answer to the next request', async () => {
    const receiver = await openReceiver(({ socket, index }) =>
      socket.write(index === 0 ? `${OK}HTTP/1.1 201 Created\r\ncontent-length: 0\r\n\r\n` : OK),
    );
    const sender = openSender(LOOPBACK);
    expect(await sender.send(hook(receiver.port))).toMatchObject({ status: 200 });
    expect(await sender.send(hook(receiver.port))).toMatchObject({ status: 200 });
  });
});

describe('requests that cannot be sent', () => {
  it.each<[string, Partial<OutgoingRequest>]>([
    ['a header value with a line break', { headers: [['x-a', 'a\r\nx-evil: 1']] }],
    ['a header value with a carriage return', { headers: [['x-a', 'a\rx-evil: 1']] }],
    ['a header value with a line feed', { headers: [['x-a', 'a\nx-evil: 1']] }],
    ['a header value with a NUL', { headers: [['x-a', 'a\0']] }],
    // Their low bytes are CR and LF.
    ['a header value that latin1 would cut', { headers: [['x-a', 'a\u010d\u010ax-evil: 1']] }],
    ['a header name with a line break', { headers: [['x-a: 1\r\nx-evil', '1']] }],
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
    const sender = openSender(LOOPBACK);
    const mates = [hook(receiver.port), hook(receiver.port, changes), hook(receiver.port)];
    const [first, broken, last] = await Promise.all(mates.map((mate) => sender.send(mate)));
    expect(broken).toMatchObject({ kind: 'failure', error: 'unsendable', sent: false });
    expect([first, last]).toMatchObject([{ status: 200 }, { status: 200 }]);
    expect(receiver.requests).toHaveLength(2);
    expect(String(receiver.requests)).not.toContain('evil');
  });

  it.each([22, 0, 65_536])('[row 40] fails only the delivery whose stored URL has port %i', async (port) => {
    const receiver = await openReceiver(({ socket }) => socket.write(OK));
    const sender = openSender(LOOPBACK);
    expect(await sender.send(hook(port))).toMatchObject({
      kind: 'failure',
      error: 'unsendable',
      sent: false,
    });
    expect(await sender.send(hook(receiver.port))).toMatchObject({ status: 200 });
  });
});

describe('giving up', () => {
  it('ends what a signal stops, and starts nothing after it', async () => {
    const receiver = await openReceiver(() => controller.abort());
    const controller = new AbortController();
    const sender = openSender(LOOPBACK);
    const both = [
      sender.send(hook(receiver.port), controller.signal),
      sender.send(hook(1), controller.signal),
    ];
    expect(await Promise.all(both)).toMatchObject([{ error: 'aborted', sent: true }, { kind: 'failure' }]);
    await receiver.untilClosed(1);
    expect(await sender.send(hook(receiver.port), controller.signal)).toMatchObject({
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
    const sender = openSender(LOOPBACK);
    await sender.send(hook(receiver.port));
    const hanging = sender.send(hook(receiver.port));
    expect(await hanging).toMatchObject({ kind: 'failure', error: 'aborted' });
    await receiver.untilClosed(1);
    expect(await sender.send(hook(receiver.port))).toMatchObject({ error: 'aborted', sent: false });
  });
});
