import net from 'node:net';
import tls from 'node:tls';
import { describe, expect, it } from 'vitest';
import { RX_STUB_TEST_TLS } from '../../test/data/rx-stub-test-tls.js';
import {
  afterThisTest,
  answering,
  openReceiver,
  openSender,
  requestTo,
} from '../../test/support/sender-fixture.js';

const OK = 'HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok';
const openTls = async () => {
  const names: unknown[] = [];
  const server = tls.createServer({ ...RX_STUB_TEST_TLS }, (socket) => {
    names.push(Reflect.get(socket, 'servername'));
    socket.on('error', () => undefined);
    socket.once('data', () => socket.end(OK));
  });
  server.on('tlsClientError', () => undefined);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  afterThisTest(() => server.close());
  const bound = server.address();
  if (bound === null || typeof bound === 'string') throw new Error('no port');
  return { port: bound.port, names };
};

describe('TLS', () => {
  const trusted = { certificateAuthorities: RX_STUB_TEST_TLS.cert };

  it('sends over TLS to the judged address under the name of the URL', async () => {
    const { port, names } = await openTls();
    const sender = openSender(['127.0.0.1'], answering(['127.0.0.1']), trusted);
    expect(await sender.send(requestTo(`https://rx.stub.test:${port}/`))).toMatchObject({
      kind: 'response',
      status: 200,
    });
    expect(names).toEqual(['rx.stub.test']);
  });

  it.each([
    ['no known authority', 'rx.stub.test', {}],
    ['another name', 'other.stub.test', trusted],
    ['a literal address', '127.0.0.1', trusted],
  ])('fails with tls_error when the certificate is for %s', async (_what, host, options) => {
    const { port, names } = await openTls();
    const sender = openSender(['127.0.0.1'], answering(['127.0.0.1']), options);
    const result = await sender.send(requestTo(`https://${host}:${port}/`));
    expect(result).toMatchObject({ kind: 'failure', error: 'tls_error', sent: false });
    expect(names.length).toBeLessThan(2);
  });

  it('fails when the receiver speaks no TLS', async () => {
    const server = net.createServer((socket) => {
      socket.on('error', () => undefined);
      socket.once('data', () => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    afterThisTest(() => server.close());
    const bound = server.address();
    const port = bound === null || typeof bound === 'string' ? 0 : bound.port;
    const sender = openSender(['127.0.0.1'], answering(['127.0.0.1']), trusted);
    expect(await sender.send(requestTo(`https://rx.stub.test:${port}/`))).toMatchObject({
      error: 'tls_error',
      sent: false,
    });
  });

  it('stops a handshake that never ends at the connect time', async () => {
    const receiver = await openReceiver(() => undefined);
    const sender = openSender(['127.0.0.1'], answering(['127.0.0.1']), trusted);
    const request = requestTo(`https://rx.stub.test:${receiver.port}/`, { connectTimeoutMs: 500 });
    expect(await sender.send(request)).toMatchObject({ error: 'connect_timeout', sent: false });
    await receiver.untilClosed(1);
    expect(receiver.opened).toHaveLength(1);
  });
});
