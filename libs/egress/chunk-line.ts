import { EgressError } from './egress-error.js';
import { CR, LF, SPACE, TAB, TEXT } from './wire-bytes.js';

/** What the extensions of all chunks of a body may take. Nobody sends any. */
const MAX_EXTENSION_BYTES = 16_384;
/** 13 hexadecimal digits are the most that are a safe integer whatever they are. */
const MAX_DIGITS = 13;
const SEMICOLON = 0x3b;

const BEFORE_DATA_CR = 0;
const BEFORE_DATA_LF = 1;
const IN_SIZE = 2;
const IN_EXTENSION = 3;
const BEFORE_LF = 4;
const DONE = 5;
const BROKEN = 6;

/**
 * Reads the line that begins a chunk, with the CRLF that ends the data of the chunk before it; in whatever pieces it
 * comes. Nothing but CRLF ends a line here.
 */
export class ChunkLine {
  size = 0;
  fault: EgressError | null = null;
  #state = IN_SIZE;
  #digits = 0;
  #room = MAX_EXTENSION_BYTES;

  get isDone(): boolean {
    return this.#state === DONE;
  }

  /** Expects the first chunk of a body. */
  begin(): void {
    this.fault = null;
    this.#room = MAX_EXTENSION_BYTES;
    this.#expect(IN_SIZE);
  }

  /** Expects the chunk after one whose data have been read. */
  beginNext(): void {
    this.#expect(BEFORE_DATA_CR);
  }

  /** Reads on from a place; gives the place after the last byte it took. Look at `isDone` and `fault` then. */
  read(bytes: Buffer, from: number, to: number): number {
    let at = from;
    for (; at < to && this.#state < DONE; at += 1) this.#readByte(bytes[at]!);
    return at;
  }

  #expect(state: number): void {
    this.#state = state;
    this.#digits = 0;
    this.size = 0;
  }

  #readByte(byte: number): void {
    switch (this.#state) {
      case BEFORE_DATA_CR:
        return this.#go(byte === CR, BEFORE_DATA_LF);
      case BEFORE_DATA_LF:
        return this.#go(byte === LF, IN_SIZE);
      case IN_SIZE:
        return this.#readSize(byte);
      case IN_EXTENSION:
        if (byte === CR) return this.#go(true, BEFORE_LF);
        this.#room -= 1;
        return this.#go(TEXT[byte] === 1 && this.#room >= 0, IN_EXTENSION);
      default:
        return this.#go(byte === LF, DONE);
    }
  }

  #readSize(byte: number): void {
    const digit = hexDigit(byte);
    if (digit !== -1) {
      this.size = this.size * 16 + digit;
      this.#digits += 1;
      return this.#go(this.#digits <= MAX_DIGITS, IN_SIZE);
    }
    const isEnd = byte === CR;
    const isExtension = byte === SEMICOLON || byte === SPACE || byte === TAB;
    return this.#go(this.#digits > 0 && (isEnd || isExtension), isEnd ? BEFORE_LF : IN_EXTENSION);
  }

  #go(isLegal: boolean, state: number): void {
    this.#state = isLegal ? state : BROKEN;
    if (!isLegal) this.fault = new EgressError('protocol_error', 'the body has a broken chunk');
  }
}

function hexDigit(byte: number): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30;
  const lower = byte | 0x20;
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : -1;
}
