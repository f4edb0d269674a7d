import { createServer as createHttpServer, type Server } from 'node:http';
import { NestFactory } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import express from 'express';
import type { ApiContext } from './api-context.js';
import { AppModule } from './app.module.js';
import { answerClientError } from './http/client-error.js';
import { greetRequest } from './http/greet-request.js';
import { NestLogger } from './nest-logger.js';

/** Node waits 60 s for headers, 300 s for a request, and looks every 30 s: too long with connections to spare. */
const SERVER_OPTIONS = {
  headersTimeout: 10_000,
  requestTimeout: 30_000,
  // Above the usual 60 s of a proxy, which would otherwise send into a connection that we are just closing.
  keepAliveTimeout: 65_000,
  connectionsCheckingInterval: 5_000,
  maxHeaderSize: 16_384,
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
    logger: new NestLogger(context.logger),
  });
  await app.init();
  const server = createHttpServer(SERVER_OPTIONS, instance);
  server.on('clientError', answerClientError);
  return { server, close: () => app.close() };
}
