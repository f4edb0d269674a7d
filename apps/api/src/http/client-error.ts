import { STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import { AppError, type ErrorCode } from '#runtime';
import type { Lifecycle } from '../lifecycle.js';
import { requestIdOf } from './request-id.js';
import { toProblem } from './to-problem.js';

const CODES: Readonly<Record<string, ErrorCode>> = {
  ERR_HTTP_REQUEST_TIMEOUT: 'request_timeout',
  HPE_HEADER_OVERFLOW: 'headers_too_large',
  HPE_CHUNK_EXTENSIONS_OVERFLOW: 'body_too_large',
};

/**
 * Answers what never became a request (bytes that are no HTTP, headers that are too large, a request that did not
 * arrive in time) with a problem like every other, and closes the connection. Whole requests that came before it on
 * the same connection get their own answers first: a client would take ours for the answer to the oldest of them.
 */
export function answerClientErrors(
  lifecycle: Lifecycle,
): (error: NodeJS.ErrnoException, socket: Duplex) => void {
  // Node reports every further piece of a broken stream as an error of its own.
  const broken = new WeakSet<Duplex>();
  return (error, socket) => {
    if (broken.has(socket)) return;
    broken.add(socket);
    if (error.code === 'ECONNRESET') {
      socket.destroy();
      return;
    }
    const last = lifecycle.openOn(socket).findLast((response) => response.req.complete);
    if (last === undefined) answer(error, socket);
    else last.once('close', () => answer(error, socket));
  };
}

function answer(error: NodeJS.ErrnoException, socket: Duplex): void {
  if (!socket.writable) {
    socket.destroy();
    return;
  }
  const requestId = requestIdOf(undefined);
  const problem = toProblem(new AppError(CODES[error.code ?? ''] ?? 'invalid_request'), requestId);
  const body = JSON.stringify(problem.body);
  socket.end(
    `HTTP/1.1 ${problem.status} ${STATUS_CODES[problem.status]}\r\n` +
      'content-type: application/problem+json\r\n' +
      `content-length: ${Buffer.byteLength(body)}\r\n` +
      `x-request-id: ${requestId}\r\n` +
      `connection: close\r\n\r\n${body}`,
  );
}
