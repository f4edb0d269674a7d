import express, { type NextFunction, type Request, type RequestHandler, type Response } from 'express';
import { AppError } from '#runtime';
import type { ApiContext } from '../api-context.js';
import type { PublishRoad } from '../publish/publish-road.js';
import { greetRequest } from './greet-request.js';
import { stateOf } from './request-state.js';

/**
 * The Express application that Nest fills: greeting first, then the publish routes for every spelling of their targets
 * that is not the exact one, by the same handlers that serve that one.
 */
export function createExpressRoad(context: ApiContext, road: PublishRoad): express.Express {
  const instance = express();
  instance.disable('x-powered-by');
  instance.set('etag', false);
  instance.set('query parser', 'simple');
  // Express would answer 304 to any `If-None-Match: *`, and to the ETag of an endpoint, which is a version to write
  // against: what is read of it has more in it than that (the state of its circuit).
  Object.defineProperty(instance.request, 'fresh', { value: false });
  instance.use(greet(context));
  for (const [route, handle] of road) {
    instance.post(route, (request: Request, response: Response) => {
      handle({ request, response, requestId: stateOf(request).requestId, query: request.query, route });
    });
  }
  return instance;
}

function greet(context: ApiContext): RequestHandler {
  return (request: Request, response: Response, next: NextFunction) => {
    const routeOf = () => (request.route as { path?: string } | undefined)?.path ?? 'unmatched';
    stateOf(request).requestId = greetRequest(context, request, response, routeOf);
    // RFC 9112: a request of HTTP/1.1 without Host is refused.
    const hostless = request.headers.host === undefined && request.httpVersion === '1.1';
    next(hostless ? new AppError('invalid_request', 'The Host header is missing.') : undefined);
  };
}
