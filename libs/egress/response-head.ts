import { EgressError } from './egress-error.js';
import { FIELD_COUNT, LOCATION, NAME_START, OTHER_FIELD, fieldAt, nextStep } from './field-names.js';
import { CR, LF, SPACE, TAB, TEXT } from './wire-bytes.js';

/** What a head, or the trailers of a chunked body, may take. Servers send hundreds of bytes. */
export const MAX_HEAD_BYTES = 16_384;

const VERSION = Buffer.from('HTTP/1.');
const MINOR_AT = 7;
const DIGITS_AT = 9;
const REASON_AT = 12;
const COLON = 0x3a;
const ZERO = 0x30;

// Where in a head the next byte stands.
const IN_STATUS = 0;
const IN_REASON = 1;
const AT_LINE = 2;
const IN_NAME = 3;
const IN_VALUE = 4;
const BEFORE_LF = 5;
const BEFORE_LAST_LF = 6;
const DONE = 7;
const BROKEN = 8;

// There is no field yet that a folded line could go on.
const NO_FIELD = -2;

/**
 * Reads one head in whatever pieces it comes, each byte once, and makes text of the few fields alone that something
 * depends on. Lines end with CRLF or LF (RFC 9112, 2.2); a folded line goes on after a space (5.2).
 */
export class HeadReader {
  status = 0;
  /** The digit after `HTTP/1.` */
  minor = 0;
  /** By number of the field: null where it is missing, joined by a comma where it comes again (the first Location stays). */
  readonly values: (string | null)[] = Array<string | null>(FIELD_COUNT).fill(null);
  fault: EgressError | null = null;
  #keeps = true;
  #state = IN_STATUS;
  #room = MAX_HEAD_BYTES;
  #place = 0;
  #step = NAME_START;
  #field = NO_FIELD;
  #value = '';

  get isDone(): boolean {
    return this.#state === DONE;
  }

  /** Bytes of this head so far. */
  get size(): number {
    return MAX_HEAD_BYTES - this.#room;
  }

  /** Forgets what was read and expects a status line. */
  begin(): void {
    this.status = 0;
    this.#place = 0;
    this.values.fill(null);
    this.#expect(IN_STATUS, true);
  }

  /** Expects fields alone, and keeps none of them: the trailers of a chunked body. */
  beginTrailers(): void {
    this.#expect(AT_LINE, false);
  }

  /** Reads on from a place; gives the place after the last byte it took. Look at `isDone` and `fault` then. */
  read(bytes: Buffer, from: number, to: number): number {
    const end = Math.min(to, from + this.#room);
    let at = from;
    while (at < end && this.#state < DONE) at = this.#readRun(bytes, at, end);
    this.#room -= at - from;
    if (this.#room === 0 && this.#state < DONE) {
      this.#break(new EgressError('headers_overflow', `the head was longer than ${MAX_HEAD_BYTES} bytes`));
    }
    return at;
  }

  #expect(state: number, keeps: boolean): void {
    this.#state = state;
    this.#keeps = keeps;
    this.#room = MAX_HEAD_BYTES;
    this.#field = NO_FIELD;
    this.fault = null;
  }

  #readRun(bytes: Buffer, at: number, end: number): number {
    switch (this.#state) {
      case IN_STATUS:
        return this.#readStatus(bytes, at, end);
      case IN_REASON:
      case IN_VALUE:
        return this.#readText(bytes, at, end);
      case AT_LINE:
        return this.#beginLine(bytes[at]!, at);
      case IN_NAME:
        return this.#readName(bytes, at, end);
      default:
        return this.#readLineFeed(bytes[at]!, at);
    }
  }

  #readStatus(bytes: Buffer, from: number, end: number): number {
    let at = from;
    for (; at < end && this.#place < REASON_AT; at += 1, this.#place += 1) {
      const byte = bytes[at]!;
      const digit = byte - ZERO;
      if (this.#place < MINOR_AT) {
        if (byte !== VERSION[this.#place]) return this.#refuse('the answer is not HTTP/1.1', at);
      } else if (this.#place === MINOR_AT) {
        if (digit !== 0 && digit !== 1) return this.#refuse('the answer is not HTTP/1.1', at);
        this.minor = digit;
      } else if (this.#place < DIGITS_AT) {
        if (byte !== SPACE) return this.#refuse('the status line is broken', at);
      } else {
        if (!(digit >= 0 && digit <= 9)) return this.#refuse('the status is no number', at);
        this.status = this.status * 10 + digit;
      }
    }
    if (at === end) return at;
    const next = bytes[at]!;
    if (this.status < 100 || (next !== SPACE && next !== CR && next !== LF)) {
      return this.#refuse('the status is not one of three digits', at);
    }
    this.#state = IN_REASON;
    return at;
  }

  #beginLine(byte: number, at: number): number {
    if (byte === SPACE || byte === TAB) {
      if (this.#field === NO_FIELD) return this.#refuse('the first header line is folded', at);
      this.#value += ' ';
      this.#state = IN_VALUE;
      return at + 1;
    }
    this.#endField();
    if (byte === LF) {
      this.#state = DONE;
      return at + 1;
    }
    if (byte === CR) {
      this.#state = BEFORE_LAST_LF;
      return at + 1;
    }
    this.#step = NAME_START;
    this.#state = IN_NAME;
    return at;
  }

  #readName(bytes: Buffer, from: number, end: number): number {
    let step = this.#step;
    for (let at = from; at < end; at += 1) {
      const byte = bytes[at]!;
      const next = nextStep(step, byte);
      if (next === 0) {
        if (byte !== COLON || step === NAME_START) return this.#refuse('a header has a broken name', at);
        this.#field = this.#keeps ? fieldAt(step) : OTHER_FIELD;
        this.#value = '';
        this.#state = IN_VALUE;
        return at + 1;
      }
      step = next;
    }
    this.#step = step;
    return end;
  }

  #readText(bytes: Buffer, from: number, end: number): number {
    let at = from;
    while (at < end && TEXT[bytes[at]!] === 1) at += 1;
    if (this.#field >= 0) this.#value += bytes.toString('latin1', from, at);
    if (at === end) return at;
    const byte = bytes[at]!;
    if (byte === LF) this.#state = AT_LINE;
    else if (byte === CR) this.#state = BEFORE_LF;
    else return this.#refuse('a line of the head has a control character', at);
    return at + 1;
  }

  #readLineFeed(byte: number, at: number): number {
    if (byte !== LF) return this.#refuse('a line of the head has a lone carriage return', at);
    this.#state = this.#state === BEFORE_LF ? AT_LINE : DONE;
    return at + 1;
  }

  #endField(): void {
    const field = this.#field;
    if (field < 0) return;
    this.#field = OTHER_FIELD;
    const before = this.values[field] ?? null;
    if (before === null) this.values[field] = trimBlanks(this.#value);
    else if (field !== LOCATION) this.values[field] = `${before}, ${trimBlanks(this.#value)}`;
  }

  #refuse(message: string, at: number): number {
    this.#break(new EgressError('protocol_error', message));
    return at;
  }

  #break(fault: EgressError): void {
    this.fault = fault;
    this.#state = BROKEN;
  }
}

// Not trim(): that takes 0xa0 away as well, which may be the last byte of a UTF-8 character.
function trimBlanks(value: string): string {
  let from = 0;
  let to = value.length;
  while (from < to && isBlank(value.charCodeAt(from))) from += 1;
  while (to > from && isBlank(value.charCodeAt(to - 1))) to -= 1;
  return value.slice(from, to);
}

function isBlank(code: number): boolean {
  return code === SPACE || code === TAB;
}
