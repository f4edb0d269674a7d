import {
  createServer as createHttpServer,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http';
import type { INestApplication } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import type { Express, Request, Response } from 'express';
import { AppError, nestLogger } from '#runtime';
import type { ApiContext } from './api-context.js';
import { AppModule } from './app.module.js';
import { answerClientErrors } from './http/client-error.js';
import { createExpressRoad } from './http/express-road.js';
import { greetRequest } from './http/greet-request.js';
import { requestIdOf } from './http/request-id.js';
import { sendProblem } from './http/send-problem.js';
import { toProblem } from './http/to-problem.js';
import { createPublishRoad, type PublishRoad } from './publish/publish-road.js';

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

const NO_QUERY = {};

type Listener = (request: IncomingMessage, response: ServerResponse) => void;

/** The Nest application on an HTTP server that does not listen yet, and how to let go of it. */
export async function createServer(context: ApiContext): Promise<{ server: Server; close(): Promise<void> }> {
  const road = createPublishRoad(context);
  const { app, instance } = await createApplication(context, road);
  const handle = aheadOf(context, road, (request, response) => {
    // Express calls the last function for a target so broken that it reaches no route and no filter.
    instance(request as Request, response as Response, () =>
      sendProblem(response, toProblem(new AppError('invalid_request'), requestIdOf(undefined))),
    );
  });
  const server = createHttpServer(SERVER_OPTIONS, handle);
  // Expectations other than 100-continue may be ignored; Node's own answer to them is no problem+json.
  server.on('checkExpectation', handle);
  server.on('clientError', answerClientErrors(context.lifecycle));
  return { server, close: () => app.close() };
}

/** Every route on Express, without a server; only answering one needs what the context holds. */
export async function createApplication(
  context: ApiContext,
  road: PublishRoad,
): Promise<{ app: INestApplication; instance: Express }> {
  const instance = createExpressRoad(context, road);
  const app = await NestFactory.create(AppModule.around(context), new ExpressAdapter(instance), {
    bodyParser: false,
    abortOnError: false,
    logger: nestLogger(context.logger),
  });
  await app.init();
  return { app, instance };
}

/** Takes the requests whose target is exactly a publish route; all others go on to Express. */
function aheadOf(context: ApiContext, road: PublishRoad, express: Listener): Listener {
  return (request, response) => {
    const route = request.url!;
    const publish = request.method === 'POST' && request.headers.host !== undefined && road.get(route);
    if (!publish) {
      express(request, response);
      return;
    }
    const requestId = greetRequest(context, request, response, () => route);
    publish({ request, response, requestId, query: NO_QUERY, route });
  };
}
