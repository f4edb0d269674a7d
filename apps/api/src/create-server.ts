import {
  createServer as createHttpServer,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http';
import { NestFactory } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import express from 'express';
import { AppError, nestLogger } from '#runtime';
import type { ApiContext } from './api-context.js';
import { AppModule } from './app.module.js';
import { answerClientError } from './http/client-error.js';
import { greetRequest } from './http/greet-request.js';
import { requestIdOf } from './http/request-id.js';
import { sendProblem } from './http/send-problem.js';
import { toProblem } from './http/to-problem.js';

/** Node waits 60 s for headers, 300 s for a request, and looks every 30 s: too long with connections to spare. */
const SERVER_OPTIONS = {
  headersTimeout: 10_000,
  requestTimeout: 30_000,
  // Above the usual 60 s of a proxy, which would otherwise send into a connection that we are just closing.
  keepAliveTimeout: 65_000,
  connectionsCheckingInterval: 5_000,
  maxHeaderSize: 16_384,
  // Refused by ourselves, with a problem like any other; Node's own answer has no body.
  requireHostHeader: false,
};

/** The Nest application on an HTTP server that does not listen yet, and how to let go of it. */
export async function createServer(context: ApiContext): Promise<{ server: Server; close(): Promise<void> }> {
  const instance = express();
  instance.disable('x-powered-by');
  instance.set('etag', false);
  instance.set('query parser', 'simple');
  instance.use(greetRequest(context));
  const app = await NestFactory.create(AppModule.around(context), new ExpressAdapter(instance), {
    bodyParser: false,
    abortOnError: false,
    logger: nestLogger(context.logger),
  });
  await app.init();
  const handle = (request: IncomingMessage, response: ServerResponse): void => {
    // Express calls the last function for a target so broken that it reaches no route and no filter.
    const asExpress = [request as express.Request, response as express.Response] as const;
    instance(...asExpress, () =>
      sendProblem(response, toProblem(new AppError('invalid_request'), requestIdOf(undefined))),
    );
  };
  const server = createHttpServer(SERVER_OPTIONS, handle);
  // Expectations other than 100-continue may be ignored; Node's own answer to them is no problem+json.
  server.on('checkExpectation', handle);
  server.on('clientError', answerClientError);
  return { server, close: () => app.close() };
}
