import { once } from 'node:events';
import { createServer, request, type IncomingHttpHeaders, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { AppError } from '#runtime';
import { readBody } from './read-body.js';

const LIMIT = 1_000;
let server: Server;

beforeAll(async () => {
  server = createServer((incoming, response) => {
    readBody(incoming, LIMIT).then(
      (bytes) => response.end(`read ${bytes.length}`),
      (error: unknown) => response.end(error instanceof AppError ? error.code : String(error)),
    );
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
});

afterAll(() => {
  server.closeAllConnections();
  server.close();
});

async function send(headers: IncomingHttpHeaders, chunks: readonly Buffer[]): Promise<string> {
  const { port } = server.address() as AddressInfo;
  const outgoing = request({
    port,
    host: '127.0.0.1',
    method: 'POST',
    agent: false,
    headers: { 'content-type': 'application/json', ...headers },
  });
  // A server that answers early may close while we are still writing.
  outgoing.on('error', () => undefined);
  for (const chunk of chunks) outgoing.write(chunk);
  outgoing.end();
  const [response] = (await once(outgoing, 'response')) as [AsyncIterable<Buffer>];
  let text = '';
  for await (const chunk of response) text += chunk.toString();
  outgoing.destroy();
  return text;
}

describe('readBody', () => {
  it('gives up to the limit, in one piece or many', async () => {
    expect(await send({}, [])).toBe('read 0');
    expect(await send({ 'content-length': '1000' }, [Buffer.alloc(LIMIT)])).toBe('read 1000');
    expect(
      await send(
        {},
        Array.from({ length: 10 }, () => Buffer.alloc(100)),
      ),
    ).toBe('read 1000');
  });

  it('refuses one byte more, announced or not', async () => {
    expect(await send({ 'content-length': '1001' }, [Buffer.alloc(1_001)])).toBe('body_too_large');
    expect(await send({ 'transfer-encoding': 'chunked' }, [Buffer.alloc(600), Buffer.alloc(401)])).toBe(
      'body_too_large',
    );
    expect(await send({ 'content-length': '99999999999' }, [Buffer.alloc(1)])).toBe('body_too_large');
  });

  it.each(['gzip', 'deflate', 'br', 'gzip, gzip', 'identity', 'x-unknown', ''])(
    '[H19] refuses the content encoding %j unread',
    async (encoding) => {
      expect(await send({ 'content-encoding': encoding }, [Buffer.alloc(10)])).toBe(
        'unsupported_content_encoding',
      );
    },
  );

  it.each(['application/json', 'Application/JSON; Charset=UTF-8', 'application/json;charset="utf-8"'])(
    'takes the content type %s',
    async (type) => {
      expect(await send({ 'content-type': type }, [Buffer.alloc(3)])).toBe('read 3');
    },
  );

  it.each([
    '',
    'text/plain',
    'application/json; charset=latin1',
    'application/problem+json',
    'application/jsonp',
  ])('refuses the content type %j', async (type) => {
    expect(await send({ 'content-type': type }, [Buffer.alloc(3)])).toBe('unsupported_content_type');
  });
});
