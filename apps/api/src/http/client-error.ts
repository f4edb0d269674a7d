import type { Duplex } from 'node:stream';
import { AppError } from '#runtime';
import { requestIdOf } from './request-id.js';
import { toProblem } from './to-problem.js';

/**
 * Answers what never became a request (bytes that are no HTTP, headers that are too large, a request that did not
 * arrive in time) with a problem like every other, and closes the connection.
 */
export function answerClientError(error: NodeJS.ErrnoException, socket: Duplex): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return;
  }
  const late = error.code === 'ERR_HTTP_REQUEST_TIMEOUT';
  const requestId = requestIdOf(undefined);
  const problem = toProblem(new AppError(late ? 'request_timeout' : 'invalid_request'), requestId);
  const body = JSON.stringify(problem.body);
  socket.end(
    `HTTP/1.1 ${problem.status} ${late ? 'Request Timeout' : 'Bad Request'}\r\n` +
      'content-type: application/problem+json\r\n' +
      `content-length: ${Buffer.byteLength(body)}\r\n` +
      `x-request-id: ${requestId}\r\n` +
      `connection: close\r\n\r\n${body}`,
  );
}
