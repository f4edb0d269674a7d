// Posts the same request over kept connections as fast as they are answered, one at a time on each: bare sockets, so
// that the load costs less than what it loads.
import { connect } from 'node:net';
import { answer } from './answer.mjs';
import { nowMs } from './now-ms.mjs';

const HEAD_END = Buffer.from('\r\n\r\n');

answer({
  /** Posts for `ms` on so many connections; returns the answers' count, times and statuses. */
  post: async ({ url, headers, body, connections, ms }) => {
    const { hostname, port, pathname } = new URL(url);
    const lines = Object.entries({
      host: `${hostname}:${port}`,
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(body),
      ...headers,
    }).map(([name, value]) => `${name}: ${value}\r\n`);
    const request = Buffer.from(`POST ${pathname} HTTP/1.1\r\n${lines.join('')}\r\n${body}`);
    const tookMs = [];
    const startedMs = nowMs();
    const lanes = Array.from({ length: connections }, () =>
      postOn({ hostname, port, request, untilMs: startedMs + ms, tookMs }),
    );
    await Promise.all(lanes);
    const seconds = (nowMs() - startedMs) / 1000;
    tookMs.sort((a, b) => a - b);
    return {
      count: tookMs.length,
      perSecond: tookMs.length / seconds,
      p50Ms: tookMs[Math.floor(tookMs.length / 2)],
      p99Ms: tookMs[Math.floor(tookMs.length * 0.99)],
    };
  },
});

function postOn({ hostname, port, request, untilMs, tookMs }) {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: hostname, port: Number(port), noDelay: true });
    let sentMs = 0;
    let rest = Buffer.alloc(0);
    const post = () => {
      sentMs = nowMs();
      socket.write(request);
    };
    socket.on('connect', post);
    socket.on('error', reject);
    socket.on('data', (chunk) => {
      rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
      const headEnd = rest.indexOf(HEAD_END);
      if (headEnd === -1) return;
      const head = rest.latin1Slice(0, headEnd);
      const length = Number(/content-length: *(\d+)/i.exec(head)?.[1]);
      if (!/^HTTP\/1.1 2/.test(head) || Number.isNaN(length)) {
        socket.destroy();
        reject(new Error(`answered ${rest.toString('utf8').slice(0, 500)}`));
        return;
      }
      if (rest.length < headEnd + 4 + length) return;
      rest = rest.subarray(headEnd + 4 + length);
      tookMs.push(nowMs() - sentMs);
      if (nowMs() < untilMs) post();
      else socket.end(resolve);
    });
  });
}
