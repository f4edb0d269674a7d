import type { IncomingHttpHeaders } from 'node:http';
import { connect } from 'node:net';

/** An answer as it was read from the socket; `body` is empty where the head announces none. */
export interface RawAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

export interface RawOptions {
  /** End our side after the last byte, as a client that has nothing more to say. */
  readonly end?: boolean;
  /** The same, but only when no answer has come for so long. Node gives no answer to a client that ends before it. */
  readonly endAfterMs?: number;
  /** How many final answers to wait for; the socket's end settles it earlier. */
  readonly answers?: number;
  readonly timeoutMs?: number;
}

/** What came back over one connection. */
export interface RawConversation {
  readonly answers: readonly RawAnswer[];
  /** Interim answers (100 Continue). */
  readonly interim: number;
  /** Bytes that are no whole answer. */
  readonly rest: Buffer;
  readonly closed: boolean;
}

/**
 * Sends bytes as they are over a connection of their own, and reads the answers. Rejects when neither enough answers
 * nor the end of the connection has come within `timeoutMs`.
 */
export function sendRaw(
  url: string,
  bytes: Buffer | string | readonly (Buffer | string)[],
  { end = false, endAfterMs, answers: wanted = 1, timeoutMs = 20_000 }: RawOptions = {},
): Promise<RawConversation> {
  const { hostname, port } = new URL(url);
  const pieces = Array.isArray(bytes) ? bytes : [bytes];
  return new Promise((resolve, reject) => {
    let pending = Buffer.alloc(0);
    let closed = false;
    let settled = false;
    const answers: RawAnswer[] = [];
    let interim = 0;
    const socket = connect({ host: hostname, port: Number(port) });
    const settle = (): void => {
      if (settled) return;
      settled = true;
      clearTimeout(timer);
      clearTimeout(enough);
      socket.destroy();
      resolve({ answers, interim, rest: pending, closed });
    };
    const timer = setTimeout(() => {
      if (settled) return;
      settled = true;
      socket.destroy();
      reject(
        new Error(
          `no ${wanted} answer(s) within ${timeoutMs} ms; got ${answers.length} and ${pending.length} bytes`,
        ),
      );
    }, timeoutMs);
    const enough = endAfterMs === undefined ? undefined : setTimeout(() => socket.end(), endAfterMs);
    socket.on('error', () => undefined);
    socket.on('close', () => {
      closed = true;
      settle();
    });
    socket.on('data', (chunk: Buffer) => {
      pending = Buffer.concat([pending, chunk]);
      for (let answer = takeAnswer(pending); answer !== null; answer = takeAnswer(pending)) {
        pending = pending.subarray(answer.length);
        if (answer.status < 200) interim += 1;
        else answers.push(answer);
      }
      if (answers.length >= wanted) settle();
    });
    socket.on('connect', () => {
      for (const piece of pieces) socket.write(piece);
      if (end) socket.end();
    });
  });
}

function takeAnswer(bytes: Buffer): (RawAnswer & { length: number }) | null {
  const headEnd = bytes.indexOf('\r\n\r\n');
  if (headEnd === -1) return null;
  const [statusLine = '', ...lines] = bytes.toString('latin1', 0, headEnd).split('\r\n');
  const headers: IncomingHttpHeaders = {};
  for (const line of lines) {
    const colon = line.indexOf(':');
    headers[line.slice(0, colon).toLowerCase()] = line.slice(colon + 1).trim();
  }
  const length = headEnd + 4 + Number(headers['content-length'] ?? 0);
  if (bytes.length < length) return null;
  const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(statusLine)?.[1] ?? 0);
  return { status, headers, text: bytes.toString('utf8', headEnd + 4, length), length };
}
