import { unwatchAbort, watchAbort, type Abortable } from './abort-watch.js';
import type { AttemptResult } from './attempt-result.js';
import type { Connection, RequestSink } from './connection.js';
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

/** Told once how the exchange ended, and how long its connection may wait for another (0: not at all). */
export type ExchangeEnd = (exchange: Exchange, result: AttemptResult, keepMs: number) => void;

/**
 * One request and its response under one deadline. Waiting → (status known) → settled, once. Once a status is known,
 * however the body goes on, the result is that response.
 */
export class Exchange implements RequestSink, Abortable {
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
    private readonly onSettled: ExchangeEnd,
    private readonly signal: AbortSignal | undefined,
    totalTimeoutMs: number,
  ) {
    this.#timer = setTimeout(giveUp, Math.min(totalTimeoutMs, MAX_TIMER_MS), this);
    if (signal) watchAbort(signal, this);
  }

  /** Ends the exchange because the caller wants so. */
  abort(): void {
    this.#end(new EgressError('aborted', 'the attempt was given up by its caller'), 0);
  }

  /** Ends the exchange because its time is over. */
  expire(): void {
    this.#end(new EgressError('timeout', 'the attempt took longer than its total time'), 0);
  }

  onWrite(): void {
    this.#sent = true;
  }

  onHead(status: number, retryAfter: string | null, location: string | null): void {
    this.#status = status;
    if (retryAfter !== null) this.#retryAfter = headerText(retryAfter);
    if (location !== null) this.#location = headerText(location);
  }

  onBody(bytes: Buffer, from: number, to: number): void {
    const room = this.limits.keepBytes - this.#kept.length;
    // A copy: the buffer is the socket's, and the next read overwrites it.
    if (room > 0) this.#kept = Buffer.concat([this.#kept, bytes.subarray(from, Math.min(to, from + room))]);
    this.#readBytes += to - from;
    if (this.#readBytes > this.limits.maxResponseBytes) {
      this.#end(new EgressError('protocol_error', 'the response was too long'), 0);
    }
  }

  onEnd(keepMs: number): void {
    this.#end(null, keepMs);
  }

  onFault(error: Error): void {
    this.#end(error, 0);
  }

  #end(error: Error | null, keepMs: number): void {
    if (this.#settled) return;
    this.#settled = true;
    clearTimeout(this.#timer);
    if (this.signal) unwatchAbort(this.signal, this);
    const durationMs = performance.now() - this.#startedMs;
    this.onSettled(this, this.#result(error, durationMs), keepMs);
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

// The reader gives bytes as latin1 characters; people write UTF-8.
function headerText(value: string): string {
  return printable(Buffer.from(value, 'latin1').toString('utf8'), MAX_HEADER_TEXT);
}
