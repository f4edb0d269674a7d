import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ApiContext } from '../api-context.js';
import { requestIdOf } from './request-id.js';

/** After an answer that came before its request's end, the rest is read and thrown away for this long. */
const DISCARD_MS = 2_000;

/**
 * The first step of every request: an id, which it gives back, the headers every answer has, and the counts. `routeOf`
 * is asked when the answer is out.
 */
export function greetRequest(
  context: ApiContext,
  request: IncomingMessage,
  response: ServerResponse,
  routeOf: () => string,
): string {
  const startedAt = performance.now();
  const requestId = requestIdOf(request.headers['x-request-id']);
  response.setHeader('x-request-id', requestId);
  response.setHeader('cache-control', 'no-store');
  response.setHeader('x-content-type-options', 'nosniff');
  context.lifecycle.track(response);
  response.once('finish', () => discardRest(request));
  response.once('close', () => {
    const durationMs = performance.now() - startedAt;
    context.metrics.countRequest(request.method!, routeOf(), response.statusCode, durationMs);
  });
  return requestId;
}

/**
 * A refused upload is not cut at once: closing a socket with unread bytes resets it, and the client may lose the
 * answer. It is read and thrown away for a moment, then cut.
 */
function discardRest(request: IncomingMessage): void {
  if (request.complete) return;
  request.resume();
  const timer = setTimeout(() => {
    if (!request.complete) request.socket.destroy();
  }, DISCARD_MS);
  timer.unref();
}
