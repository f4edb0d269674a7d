import http from 'node:http';
import net from 'node:net';
import { describe, expect, it } from 'vitest';
import { listenOnLoopback } from '../../test/support/listen-on-loopback.js';
import { seededRandom } from '../../test/support/seeded-random.js';
import { afterThisTest, openSender, requestTo } from '../../test/support/sender-fixture.js';

const CASES = 300;
const MAX_BYTES = 1_000_000;
const random = seededRandom('responses');

/** A response as it goes over the wire; `hangsUp` when its end is the connection's. */
interface WireResponse {
  readonly bytes: Buffer;
  readonly hangsUp: boolean;
}

describe('a well-formed response', () => {
  it("has the status and body that Node's own client reads, and its connection is used again only where Node does", async () => {
    const server = await openServer();
    const reused = { ours: 0, node: 0 };
    for (let index = 0; index < CASES; index += 1) {
      server.response = makeResponse();
      const what = `seed ${random.seed}, case ${index}: ${JSON.stringify(server.response.bytes.toString('latin1').slice(0, 1_000))}`;
      const node = await sendByNode(server.port);
      const ours = await sendTwice(server);
      for (const result of ours.results) {
        expect(result, what).toMatchObject({
          kind: 'response',
          status: node.status,
          location: node.location,
          retryAfter: node.retryAfter,
          bodyTruncated: false,
        });
        expect('body' in result && result.body.equals(node.body), what).toBe(true);
      }
      if (ours.isReused) expect(node.isReused, what).toBe(true);
      reused.ours += Number(ours.isReused);
      reused.node += Number(node.isReused);
    }
    // Both ways came often, or the comparison says nothing.
    expect(reused.ours).toBeGreaterThan(CASES / 10);
    expect(reused.node).toBeLessThan((CASES * 9) / 10);
  });
});

async function sendTwice(server: { port: number; opened: number }) {
  const sender = openSender(['127.0.0.1'], undefined, { keepBytes: MAX_BYTES, maxResponseBytes: MAX_BYTES });
  const before = server.opened;
  const request = requestTo(`http://127.0.0.1:${server.port}/`);
  const results = [await sender.send(request), await sender.send(request)];
  sender.close();
  return { results, isReused: server.opened - before === 1 };
}

function sendByNode(port: number) {
  const agent = new http.Agent({ keepAlive: true });
  return new Promise<{
    status: number;
    body: Buffer;
    location: string | null;
    retryAfter: string | null;
    isReused: boolean;
  }>((resolve, reject) => {
    const request = http.request({ port, host: '127.0.0.1', method: 'POST', agent }, (response) => {
      const pieces: Buffer[] = [];
      response.on('data', (piece: Buffer) => pieces.push(piece));
      response.on('error', reject);
      request.on('close', () =>
        // Node gives a socket back in a later turn than it ends the response.
        setImmediate(() => {
          const isReused = Object.keys(agent.freeSockets).length > 0;
          agent.destroy();
          const { location = null, 'retry-after': retryAfter = null } = response.headers;
          resolve({
            status: response.statusCode!,
            body: Buffer.concat(pieces),
            location,
            retryAfter,
            isReused,
          });
        }),
      );
    });
    request.on('error', reject);
    request.end('{}');
  });
}

async function openServer() {
  const open = new Set<net.Socket>();
  const state = { port: 0, opened: 0, response: { bytes: Buffer.alloc(0), hangsUp: false } as WireResponse };
  const server = net.createServer({ noDelay: true }, (socket) => {
    state.opened += 1;
    open.add(socket);
    socket.on('close', () => open.delete(socket));
    socket.on('error', () => undefined);
    let asked = '';
    socket.on('data', (chunk) => {
      asked += chunk.toString('latin1');
      // The body goes out in chunks or not, by its client; it is the same two bytes.
      if (!/\r\n\r\n(?:2\r\n)?\{\}(?:\r\n0\r\n\r\n)?$/.test(asked)) return;
      asked = '';
      void answer(socket, state.response);
    });
  });
  afterThisTest(() => {
    for (const socket of open) socket.destroy();
    server.close();
  });
  state.port = await listenOnLoopback(server);
  return state;
}

async function answer(socket: net.Socket, { bytes, hangsUp }: WireResponse): Promise<void> {
  for (let at = 0; at < bytes.length && !socket.destroyed;) {
    // Some hundred pieces at most: long responses would take all day in small ones.
    const least = Math.ceil(bytes.length / 300);
    const taken = least + random.below(random.chance(0.5) ? 8 : bytes.length);
    socket.write(bytes.subarray(at, at + taken));
    at += taken;
    await new Promise((resolve) => setImmediate(resolve));
  }
  if (hangsUp) socket.end();
}

function makeResponse(): WireResponse {
  const status = random.pick([
    200, 200, 201, 204, 299, 301, 304, 400, 404, 410, 413, 429, 500, 503, 599, 999,
  ]);
  const isOld = random.chance(0.15);
  const isBare = status === 204 || status === 304;
  const framing = isBare ? 'none' : random.pick(isOld ? ['length', 'close'] : ['length', 'chunks', 'close']);
  const body = isBare ? Buffer.alloc(0) : random.bytes(random.pick([0, 0, 1, 2, 17, 500, 5_000, 66_000]));
  const fields = [
    ...others(),
    ...(framing === 'length' ? [`Content-Length: ${body.length}`] : []),
    ...(framing === 'chunks' ? ['Transfer-Encoding: chunked'] : []),
    ...(status === 304 && random.chance(0.3) ? ['Content-Length: 12'] : []),
    ...(random.chance(0.3)
      ? [`Connection: ${random.pick(['close', 'keep-alive', 'x, close', 'foo, keep-alive'])}`]
      : []),
    ...(random.chance(0.2)
      ? [`Keep-Alive: ${random.pick(['timeout=5', 'timeout=5, max=9', 'timeout=1', 'max=3'])}`]
      : []),
    ...(random.chance(0.3) ? [`Location: /${'x'.repeat(random.below(200))}`] : []),
    ...(random.chance(0.3) ? [`Retry-After: ${random.below(1_000)}`] : []),
  ];
  const head = `HTTP/1.${isOld ? 0 : 1} ${status} ${random.pick(['', 'OK', 'Ol\xe9 \xff!'])}\r\n${shuffled(fields).map(oddCase).join('')}\r\n`;
  const parts = [
    Buffer.from(earlyResponses() + head, 'latin1'),
    framing === 'chunks' ? inChunks(body) : body,
  ];
  return { bytes: Buffer.concat(parts), hangsUp: framing === 'close' };
}

function earlyResponses(): string {
  if (!random.chance(0.2)) return '';
  const one = (): string =>
    `HTTP/1.1 ${random.pick([100, 102, 103, 199])} X\r\n${random.pick(['', 'link: </a>\r\n', 'content-length: 5\r\n'])}\r\n`;
  return Array.from({ length: 1 + random.below(4) }, one).join('');
}

function others(): string[] {
  const names = [
    'X-A',
    'Server',
    'Connectio',
    'Content-Type',
    'Locations',
    'Date',
    "!#$%&'*+-.^_`|~",
    '__proto__',
  ];
  const values = ['', 'a', 'a:b', 'text/html; q="1"', '\xe9\xff', 'tab\tbed', 'y'.repeat(300)];
  return Array.from({ length: random.below(8) }, () => `${random.pick(names)}: ${random.pick(values)}`);
}

function shuffled(fields: string[]): string[] {
  return fields
    .map((field) => ({ field, place: random.below(1_000) }))
    .toSorted((a, b) => a.place - b.place)
    .map(({ field }) => field);
}

/** The line of a field in some casing, with some blanks around its value. */
function oddCase(field: string): string {
  const [, name = '', value = ''] = /^(.*?): (.*)$/s.exec(field) ?? [];
  const changed = random.pick([name, name.toLowerCase(), name.toUpperCase()]);
  return `${changed}:${random.pick([' ', '', '\t', '  '])}${value}${random.pick(['', '', ' ', '  '])}\r\n`;
}

function inChunks(body: Buffer): Buffer {
  const parts: Buffer[] = [];
  for (let at = 0; at < body.length;) {
    const least = Math.ceil(body.length / 200);
    const length = Math.min(body.length - at, least + random.below(random.pick([3, 100, 70_000])));
    const size = length.toString(16);
    const digits = random.pick([size, size.toUpperCase(), `00${size}`]);
    const extension = random.pick(['', '', '', ';a', ';a=b', ';a="b c";d=e']);
    parts.push(Buffer.from(`${digits}${extension}\r\n`), body.subarray(at, at + length), Buffer.from('\r\n'));
    at += length;
  }
  const trailers = random.pick(['', '', 'x-t: y\r\n', 'A: b\r\nLocation: /trailer\r\n']);
  return Buffer.concat([...parts, Buffer.from(`${random.pick(['0', '000'])}\r\n${trailers}\r\n`)]);
}
