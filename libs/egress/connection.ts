import type { Socket } from 'node:net';
import { Client, type Dispatcher } from 'undici';
import { Dial, type DialSettings } from './dial.js';
import { EgressError } from './egress-error.js';
import type { Target } from './parse-target.js';

const MAX_HEADER_BYTES = 16_384;
/**
 * What undici's parser is given at once. Beyond its limit of headers it makes an error for each one that is left of what
 * it was given: 64 KiB of them stopped the whole process for 110 ms.
 */
const PARSED_BYTES = 2_048;

/** How long an unused connection is kept. Most servers close theirs after 5 s or more; ours goes first. */
export const KEEP_ALIVE_MS = 4_000;

/**
 * One connection to one origin for one tenant, used by one exchange at a time. It dials when it is first used, and
 * again when the receiver has closed it meanwhile, with the same checks each time.
 */
export class Connection {
  /** Set by the pool: when the connection came back, in the milliseconds of performance.now(). */
  idleSinceMs = 0;
  readonly #client: Client;
  #dial: Dial | null = null;

  // A Client for each connection, not undici's Pool: to give up an exchange undici closes the socket, and its Pool
  // then opens another at once for the dead request. Destroying the Client ends all of it.
  constructor(
    readonly poolKey: string,
    target: Target,
    settings: DialSettings,
    connectTimeoutMs: number,
  ) {
    this.#client = new Client(target.origin, {
      pipelining: 1,
      keepAliveTimeout: KEEP_ALIVE_MS,
      keepAliveMaxTimeout: KEEP_ALIVE_MS,
      maxHeaderSize: MAX_HEADER_BYTES,
      // undici's timers start anew at each byte or 1xx; the exchange's total deadline stands in for both.
      headersTimeout: 0,
      bodyTimeout: 0,
      connect: (_options, callback) => {
        this.#dial = new Dial(target, settings, connectTimeoutMs, (error, socket) => {
          this.#dial = null;
          if (error) callback(error, null);
          else if (socket) callback(null, readInPieces(socket));
        });
      },
    });
  }

  /** Sends one request; the handler hears everything, refusals included. */
  dispatch(options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): void {
    this.#client.dispatch(options, handler);
  }

  /** Closes the socket now, in whatever state it is. */
  destroy(): void {
    this.#client.destroy(new EgressError('aborted', 'the connection was given up'), noop);
    this.#dial?.cancel();
    this.#dial = null;
  }
}

function readInPieces(socket: Socket): Socket {
  const read = socket.read.bind(socket);
  socket.read = (size?: number) => {
    // A destroyed socket still gives what it had buffered.
    if (socket.destroyed) return null;
    return read(size ?? (Math.min(socket.readableLength, PARSED_BYTES) || undefined));
  };
  return socket;
}

function noop(): void {}
