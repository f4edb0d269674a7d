// Receivers at the least cost there is: bare sockets that find the end of a request and answer it.
import { createServer } from 'node:net';
import { answer } from './answer.mjs';
import { nowMs } from './now-ms.mjs';

const ANSWERS = {
  ok: Buffer.from('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n'),
  fail: Buffer.from('HTTP/1.1 500 Internal Server Error\r\ncontent-length: 0\r\n\r\n'),
  hang: null,
};
const HEAD_END = Buffer.from('\r\n\r\n');

let arrivals = { count: 0, firstMs: 0, lastMs: 0 };

answer({
  /** Opens so many ports in one mode: ok (200), fail (500) or hang (reads, never answers). */
  open: async ({ count, mode }) => {
    const reply = ANSWERS[mode];
    return Promise.all(Array.from({ length: count }, () => listen((socket) => serve(socket, reply))));
  },
  arrivals: () => arrivals,
  reset: () => {
    arrivals = { count: 0, firstMs: 0, lastMs: 0 };
  },
});

function listen(onSocket) {
  return new Promise((resolve) => {
    const server = createServer({ noDelay: true }, onSocket);
    server.listen(0, '127.0.0.1', () => resolve(server.address().port));
  });
}

function serve(socket, reply) {
  let rest = null;
  socket.on('error', () => undefined);
  socket.on('data', (chunk) => {
    let bytes = rest === null ? chunk : Buffer.concat([rest, chunk]);
    for (;;) {
      const length = requestLength(bytes);
      if (length === 0 || bytes.length < length) break;
      arrive();
      if (reply !== null) socket.write(reply);
      bytes = bytes.subarray(length);
    }
    rest = bytes.length === 0 ? null : bytes;
  });
}

function requestLength(bytes) {
  const headEnd = bytes.indexOf(HEAD_END);
  if (headEnd === -1) return 0;
  const length = /content-length: *(\d+)/i.exec(bytes.latin1Slice(0, headEnd));
  return headEnd + 4 + Number(length?.[1] ?? 0);
}

function arrive() {
  const now = nowMs();
  if (arrivals.count === 0) arrivals.firstMs = now;
  arrivals.count += 1;
  arrivals.lastMs = now;
}
