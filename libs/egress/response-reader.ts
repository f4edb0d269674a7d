import { ChunkLine } from './chunk-line.js';
import { EgressError } from './egress-error.js';
import { LOCATION, RETRY_AFTER } from './field-names.js';
import { frameResponse } from './response-framing.js';
import { HeadReader, MAX_HEAD_BYTES } from './response-head.js';

/** Hears one response: at most one head, its body in pieces, then either the end or a fault, once. */
export interface ResponseSink {
  /** The status of 200 or above, and these fields as latin1 text. */
  onHead(status: number, retryAfter: string | null, location: string | null): void;
  /** Bytes of the body, from a place to before another; they are good during the call only. */
  onBody(bytes: Buffer, from: number, to: number): void;
  /** The response is whole. Its connection may wait this long for the next request; 0: it must be closed. */
  onEnd(keepMs: number): void;
  /** The rest of the response will not come or cannot be read. */
  onFault(error: Error): void;
}

/**
 * What all 1xx before a response may take. They are read by the one thread that sends everybody's requests, at 20 to 60
 * MB/s: without an end, four receivers that flood delayed the attempts of others by 3 s.
 */
const MAX_INTERIM_BYTES = MAX_HEAD_BYTES;

// What the next byte belongs to.
const HEAD = 0;
const BODY = 1;
const CHUNK_LINE = 2;
const CHUNK = 3;
const TRAILERS = 4;

/**
 * Reads the responses of one HTTP/1.1 connection, one at a time, in whatever pieces they come. Each byte is looked at
 * once, and what it takes in memory does not grow with what a receiver sends. Knows no socket.
 */
export class ResponseReader {
  #sink: ResponseSink | null = null;
  #part = HEAD;
  /** Bytes of the body, or of the chunk, that are still to come. */
  #left = 0;
  #keepMs = 0;
  #interimBytes = 0;
  readonly #head = new HeadReader();
  readonly #chunkLine = new ChunkLine();

  /** Whether a response is awaited or under way. Bytes that come while none is are nobody's. */
  get isWaiting(): boolean {
    return this.#sink !== null;
  }

  /** Expects a response, for this sink. */
  begin(sink: ResponseSink): void {
    this.#sink = sink;
    this.#part = HEAD;
    this.#interimBytes = 0;
    this.#head.begin();
  }

  /** Tells the sink nothing more. */
  stop(): void {
    this.#sink = null;
  }

  /** Takes the first bytes of a buffer, which may change afterwards. */
  read(bytes: Buffer, length: number): void {
    let at = 0;
    // The sink may stop it at any byte of the body.
    for (let sink = this.#sink; sink !== null && at < length; sink = this.#sink) {
      if (this.#part === HEAD) at = this.#readHead(sink, bytes, at, length);
      else if (this.#part === CHUNK_LINE) at = this.#readChunkLine(bytes, at, length);
      else if (this.#part === TRAILERS) at = this.#readTrailers(bytes, at, length);
      else at = this.#readBody(sink, bytes, at, length);
    }
  }

  /** The receiver has ended its side. */
  close(): void {
    if (this.#part === BODY && this.#left === Number.POSITIVE_INFINITY) this.#end(true);
    else this.fail(new EgressError('connection_reset', 'the receiver hung up before its answer was whole'));
  }

  /** Ends the response, if there is one, with this fault. */
  fail(error: Error): void {
    const sink = this.#sink;
    this.#sink = null;
    sink?.onFault(error);
  }

  #readHead(sink: ResponseSink, bytes: Buffer, from: number, to: number): number {
    const head = this.#head;
    const at = head.read(bytes, from, to);
    if (head.fault) this.fail(head.fault);
    if (!head.isDone) return at;
    const { status, minor, values } = head;
    if (status < 200) {
      this.#interimBytes += head.size;
      // Nobody asked for another protocol.
      if (status === 101) this.fail(new EgressError('protocol_error', 'the answer changes the protocol'));
      else if (this.#interimBytes > MAX_INTERIM_BYTES)
        this.fail(
          new EgressError(
            'protocol_error',
            `no answer came after ${MAX_INTERIM_BYTES} bytes of interim ones`,
          ),
        );
      head.begin();
      return at;
    }
    const framing = frameResponse(status, minor, values);
    if (framing instanceof EgressError) {
      this.fail(framing);
      return at;
    }
    sink.onHead(status, values[RETRY_AFTER] ?? null, values[LOCATION] ?? null);
    this.#keepMs = framing.keepMs;
    if (framing.length === null) {
      this.#part = CHUNK_LINE;
      this.#chunkLine.begin();
      return at;
    }
    this.#part = BODY;
    this.#left = framing.length;
    if (this.#left === 0) this.#end(at === to);
    return at;
  }

  #readBody(sink: ResponseSink, bytes: Buffer, from: number, to: number): number {
    const at = Math.min(to, from + this.#left);
    this.#left -= at - from;
    sink.onBody(bytes, from, at);
    if (this.#left > 0) return at;
    if (this.#part === BODY) {
      this.#end(at === to);
    } else {
      this.#part = CHUNK_LINE;
      this.#chunkLine.beginNext();
    }
    return at;
  }

  #readChunkLine(bytes: Buffer, from: number, to: number): number {
    const line = this.#chunkLine;
    const at = line.read(bytes, from, to);
    if (line.fault) this.fail(line.fault);
    if (!line.isDone) return at;
    this.#left = line.size;
    this.#part = line.size === 0 ? TRAILERS : CHUNK;
    if (line.size === 0) this.#head.beginTrailers();
    return at;
  }

  #readTrailers(bytes: Buffer, from: number, to: number): number {
    const at = this.#head.read(bytes, from, to);
    if (this.#head.fault) this.fail(this.#head.fault);
    else if (this.#head.isDone) this.#end(at === to);
    return at;
  }

  // Bytes after the end answer nothing that was asked: this response stands, and nothing else is asked here.
  #end(isLastByte: boolean): void {
    const sink = this.#sink;
    this.#sink = null;
    sink?.onEnd(isLastByte ? this.#keepMs : 0);
  }
}
