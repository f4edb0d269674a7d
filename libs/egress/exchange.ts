import type { Dispatcher } from 'undici';
import { unwatchAbort, watchAbort, type Abortable } from './abort-watch.js';
import type { AttemptResult } from './attempt-result.js';
import type { Connection } from './connection.js';
import { cutUtf8 } from './cut-utf8.js';
import { EgressError, printable, toEgressError } from './egress-error.js';

const MAX_HEADER_TEXT = 2_048;
const MAX_TIMER_MS = 2 ** 31 - 1;
const NO_BYTES = Buffer.alloc(0);

/** How much of a response is read, and how much of that is kept. */
export interface BodyLimits {
  readonly maxResponseBytes: number;
  readonly keepBytes: number;
}

/** Told once how the exchange ended, and whether its connection can carry another. */
export type ExchangeEnd = (exchange: Exchange, result: AttemptResult, reusable: boolean) => void;

/**
 * One request and its response under one deadline. Waiting → (status known) → settled, once. Once a status is known,
 * however the body goes on, the result is that response. It speaks undici's older handler interface on purpose: raw
 * header buffers, no object for each response (7.30 serves both alike).
 */
export class Exchange implements Dispatcher.DispatchHandler, Abortable {
  readonly #startedMs = performance.now();
  readonly #timer: NodeJS.Timeout;
  #settled = false;
  #sent = false;
  #status = 0;
  #retryAfter: string | null = null;
  #location: string | null = null;
  #kept: Buffer = NO_BYTES;
  #readBytes = 0;

  constructor(
    readonly connection: Connection,
    readonly resolve: (result: AttemptResult) => void,
    private readonly limits: BodyLimits,
    private readonly onEnd: ExchangeEnd,
    private readonly signal: AbortSignal | undefined,
    totalTimeoutMs: number,
  ) {
    this.#timer = setTimeout(giveUp, Math.min(totalTimeoutMs, MAX_TIMER_MS), this);
    if (signal) watchAbort(signal, this);
  }

  /** Ends the exchange because the caller wants so. */
  abort(): void {
    this.#end(new EgressError('aborted', 'the attempt was given up by its caller'), false);
  }

  /** Ends the exchange because its time is over. */
  expire(): void {
    this.#end(new EgressError('timeout', 'the attempt took longer than its total time'), false);
  }

  // Called when a socket is ready, right before the request is written to it.
  onConnect(abort: (error?: Error) => void): void {
    if (this.#settled) abort();
    else this.#sent = true;
  }

  onHeaders(status: number, headers: Buffer[]): boolean {
    // 102, 103 and the like may come as often as they want; only the deadline counts them.
    if (status < 200) return true;
    this.#status = status;
    for (let index = 0; index + 1 < headers.length; index += 2) {
      const name = headers[index];
      const value = headers[index + 1];
      if (name === undefined || value === undefined) continue;
      if (name.length === 11 && isNamed(name, 'retry-after')) {
        this.#retryAfter =
          this.#retryAfter === null ? headerText(value) : `${this.#retryAfter}, ${headerText(value)}`;
      } else if (name.length === 8 && isNamed(name, 'location')) {
        this.#location ??= headerText(value);
      }
    }
    return true;
  }

  onData(chunk: Buffer): boolean {
    if (this.#settled) return true;
    const room = this.limits.keepBytes - this.#kept.length;
    // A copy: a slice would keep the whole buffer of the socket alive for these few bytes.
    if (room > 0) this.#kept = Buffer.concat([this.#kept, chunk.subarray(0, room)]);
    this.#readBytes += chunk.length;
    if (this.#readBytes > this.limits.maxResponseBytes) {
      this.#end(new EgressError('protocol_error', 'the response was too long'), false);
    }
    return true;
  }

  onComplete(): void {
    this.#end(null, true);
  }

  onError(error: Error): void {
    this.#end(error, false);
  }

  #end(error: Error | null, reusable: boolean): void {
    if (this.#settled) return;
    this.#settled = true;
    clearTimeout(this.#timer);
    if (this.signal) unwatchAbort(this.signal, this);
    const durationMs = performance.now() - this.#startedMs;
    this.onEnd(this, this.#result(error, durationMs), reusable);
  }

  #result(error: Error | null, durationMs: number): AttemptResult {
    if (this.#status === 0) {
      const { kind, message } = toEgressError(error);
      return { kind: 'failure', error: kind, message: printable(message), durationMs, sent: this.#sent };
    }
    const bodyTruncated = error !== null || this.#readBytes > this.#kept.length;
    return {
      kind: 'response',
      status: this.#status,
      retryAfter: this.#retryAfter,
      location: this.#location,
      body: bodyTruncated ? cutUtf8(this.#kept) : this.#kept,
      bodyTruncated,
      durationMs,
    };
  }
}

function giveUp(exchange: Exchange): void {
  exchange.expire();
}

function isNamed(name: Buffer, wanted: string): boolean {
  return name.toString('latin1').toLowerCase() === wanted;
}

function headerText(value: Buffer): string {
  return printable(value.toString('utf8'), MAX_HEADER_TEXT);
}
