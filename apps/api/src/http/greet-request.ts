import { randomUUID } from 'node:crypto';
import type { NextFunction, Request, RequestHandler, Response } from 'express';
import type { ApiContext } from '../api-context.js';
import { stateOf } from './request-state.js';

const REQUEST_ID = /^[A-Za-z0-9._-]{1,128}$/;

/** After an answer that came before its request's end, the rest is read and thrown away for this long. */
const DISCARD_MS = 2_000;

/** The first step of every request: an id, the headers every answer has, and the counts. */
export function greetRequest(context: ApiContext): RequestHandler {
  return (request: Request, response: Response, next: NextFunction) => {
    const startedAt = performance.now();
    const given = request.headers['x-request-id'];
    const requestId =
      typeof given === 'string' && REQUEST_ID.test(given) ? given : `req_${randomUUID().replaceAll('-', '')}`;
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
    next();
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
