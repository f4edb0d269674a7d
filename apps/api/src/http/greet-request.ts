import type { NextFunction, Request, RequestHandler, Response } from 'express';
import { AppError } from '#runtime';
import type { ApiContext } from '../api-context.js';
import { requestIdOf } from './request-id.js';
import { stateOf } from './request-state.js';

/** After an answer that came before its request's end, the rest is read and thrown away for this long. */
const DISCARD_MS = 2_000;

/** The first step of every request: an id, the headers every answer has, and the counts. */
export function greetRequest(context: ApiContext): RequestHandler {
  return (request: Request, response: Response, next: NextFunction) => {
    const startedAt = performance.now();
    const requestId = requestIdOf(request.headers['x-request-id']);
    stateOf(request).requestId = requestId;
    response.setHeader('x-request-id', requestId);
    response.setHeader('cache-control', 'no-store');
    response.setHeader('x-content-type-options', 'nosniff');
    context.lifecycle.track(response);
    response.once('finish', () => discardRest(request));
    response.once('close', () => {
      const route = (request.route as { path?: string } | undefined)?.path ?? 'unmatched';
      context.metrics.countRequest(request.method, route, response.statusCode, performance.now() - startedAt);
    });
    // RFC 9112: a request of HTTP/1.1 without Host is refused.
    const hostless = request.headers.host === undefined && request.httpVersion === '1.1';
    next(hostless ? new AppError('invalid_request', 'The Host header is missing.') : undefined);
  };
}

/**
 * A refused upload is not cut at once: closing a socket with unread bytes resets it, and the client may lose the
 * answer. It is read and thrown away for a moment, then cut.
 */
function discardRest(request: Request): void {
  if (request.complete) return;
  request.resume();
  const timer = setTimeout(() => {
    if (!request.complete) request.socket.destroy();
  }, DISCARD_MS);
  timer.unref();
}
