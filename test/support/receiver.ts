import { once } from 'node:events';
import { createServer, type IncomingMessage, type OutgoingHttpHeaders, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

import { listenOnLoopback } from './listen-on-loopback.js';
import { type ReceivedRequest, RequestLog } from './received-requests.js';

export type { ReceivedRequest } from './received-requests.js';
export { type RawReceiver, startRawReceiver } from './raw-receiver.js';

/** What a request gets: a status, a whole answer, `reset` (the connection is reset) or `hang` (nothing, ever). */
export type Answer =
  | number
  | 'reset'
  | 'hang'
  | {
      readonly status: number;
      readonly headers?: OutgoingHttpHeaders;
      readonly body?: Buffer | string;
      readonly delayMs?: number;
    };

/** A fixed answer, or one chosen for each request. */
export type Answering = Answer | ((request: ReceivedRequest) => Answer | Promise<Answer>);

export interface ReceiverOptions {
  readonly answer?: Answering;
  /** How long an idle connection stays open; 0 closes each one after its answer. */
  readonly keepAliveTimeoutMs?: number;
}

/** A real HTTP server on loopback that writes down every request it got whole, in order of arrival. */
export interface Receiver extends Omit<RequestLog, 'arrive' | 'depart' | 'record'> {
  /** `http://127.0.0.1:PORT`, without a slash at its end. */
  readonly url: string;
  readonly port: number;
  /** What requests from now on get; 200 at the start. */
  answer(answering: Answering): void;
  /** From now on requests are recorded and stay open until `release`. */
  hold(): void;
  /** Answers all that is held, with `answering` or as `answer` says, and holds no longer. */
  release(answering?: Answering): void;
  /** Requests that `hold` keeps open at this moment. */
  readonly held: number;
  /** Called (and awaited) for each whole request before it is answered: the place to kill a sender in mid-send. */
  onRequest(callback: (request: ReceivedRequest) => void | Promise<void>): () => void;
  /** Destroys every socket and closes the port. */
  close(): Promise<void>;
}

/** Starts a receiver on 127.0.0.1, on a port of the system's choice. */
export async function startReceiver(options: ReceiverOptions = {}): Promise<Receiver> {
  const log = new RequestLog();
  const callbacks = new Set<(request: ReceivedRequest) => void | Promise<void>>();
  const held = new Set<(answering: Answering) => void>();
  let answering: Answering = options.answer ?? 200;
  let holding = false;

  const chooseAnswer = async (request: ReceivedRequest): Promise<Answer> => {
    for (const callback of callbacks) await callback(request);
    const chosen = holding ? await new Promise<Answering>((resolve) => held.add(resolve)) : answering;
    return typeof chosen === 'function' ? chosen(request) : chosen;
  };

  const server = createServer((incoming, response) => {
    void receive(log, incoming, response, chooseAnswer);
  });
  // 0 would mean "no limit" to Node; 1 ms closes after the answer.
  server.keepAliveTimeout = Math.max(options.keepAliveTimeoutMs ?? 5_000, 1);
  const port = await listenOnLoopback(server);

  return {
    url: `http://127.0.0.1:${port}`,
    port,
    requests: log.requests,
    get maxOpen() {
      return log.maxOpen;
    },
    get maxOpenPerDelivery() {
      return log.maxOpenPerDelivery;
    },
    get held() {
      return held.size;
    },
    requestsFor: (deliveryId) => log.requestsFor(deliveryId),
    uniqueDeliveries: () => log.uniqueDeliveries(),
    waitFor: (wanted, timeoutMs) => log.waitFor(wanted, timeoutMs),
    answer: (next) => void (answering = next),
    hold: () => void (holding = true),
    release(released = answering) {
      holding = false;
      for (const resolve of held) resolve(released);
      held.clear();
    },
    onRequest(callback) {
      callbacks.add(callback);
      return () => void callbacks.delete(callback);
    },
    async close() {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

async function receive(
  log: RequestLog,
  incoming: IncomingMessage,
  response: ServerResponse,
  chooseAnswer: (request: ReceivedRequest) => Promise<Answer>,
): Promise<void> {
  const arrival = log.arrive(incoming);
  response.on('close', () => log.depart(arrival));
  const body = await readBody(incoming);
  if (body === null) return;
  await send(response, incoming.socket, await chooseAnswer(log.record(arrival, body)));
}

/** Null for a request that was broken off: its sender may have been killed. */
async function readBody(incoming: IncomingMessage): Promise<Buffer | null> {
  try {
    const chunks: Buffer[] = await incoming.toArray();
    return Buffer.concat(chunks);
  } catch {
    return null;
  }
}

async function send(response: ServerResponse, socket: Socket, answer: Answer): Promise<void> {
  if (answer === 'hang') return;
  if (answer === 'reset') {
    socket.resetAndDestroy();
    return;
  }
  const {
    status,
    headers = {},
    body = '',
    delayMs = 0,
  } = typeof answer === 'number' ? { status: answer } : answer;
  if (delayMs > 0) await sleep(delayMs, undefined, { ref: false });
  if (response.destroyed) return;
  response.writeHead(status, headers);
  response.end(body);
}
