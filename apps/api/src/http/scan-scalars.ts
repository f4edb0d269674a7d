import { AppError } from '#runtime';

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const MINUS = 0x2d;
const PLUS = 0x2b;
const DOT = 0x2e;
const ZERO = 0x30;
const NINE = 0x39;

/** Refuses the document at a byte; the answer names the place, never the content. */
export function refuseAt(at: number): never {
  throw new AppError('invalid_json', `The body is not valid JSON at byte ${at}.`);
}

/** The first place from `at` on that is not JSON white space. */
export function skipSpace(bytes: Uint8Array, at: number): number {
  let place = at;
  for (;;) {
    const byte = bytes[place];
    if (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09) return place;
    place += 1;
  }
}

/** The place behind the string whose opening quote is at `at`. */
export function endOfString(bytes: Uint8Array, at: number): number {
  let place = at + 1;
  for (;;) {
    const byte = bytes[place];
    if (byte === QUOTE) return place + 1;
    if (byte === undefined || byte < 0x20) return refuseAt(place);
    place = byte === BACKSLASH ? endOfEscape(bytes, place + 1) : place + 1;
  }
}

function endOfEscape(bytes: Uint8Array, at: number): number {
  switch (bytes[at]) {
    case QUOTE:
    case BACKSLASH:
    case 0x2f: // /
    case 0x62: // b
    case 0x66: // f
    case 0x6e: // n
    case 0x72: // r
    case 0x74: // t
      return at + 1;
    case 0x75: // u
      for (let place = at + 1; place <= at + 4; place += 1) if (!isHex(bytes[place])) refuseAt(place);
      return at + 5;
    default:
      return refuseAt(at);
  }
}

/** The place behind the number that starts at `at`. */
export function endOfNumber(bytes: Uint8Array, at: number): number {
  let place = bytes[at] === MINUS ? at + 1 : at;
  place = bytes[place] === ZERO ? place + 1 : endOfDigits(bytes, place);
  if (bytes[place] === DOT) place = endOfDigits(bytes, place + 1);
  if (bytes[place] === 0x65 || bytes[place] === 0x45) {
    const sign = bytes[place + 1];
    place = endOfDigits(bytes, sign === PLUS || sign === MINUS ? place + 2 : place + 1);
  }
  return place;
}

function endOfDigits(bytes: Uint8Array, at: number): number {
  let place = at;
  while (isDigit(bytes[place])) place += 1;
  return place === at ? refuseAt(at) : place;
}

const LITERALS = new Map(['true', 'false', 'null'].map((text) => [text.charCodeAt(0), Buffer.from(text)]));

/** The place behind the `true`, `false` or `null` that starts at `at`. */
export function endOfLiteral(bytes: Uint8Array, at: number): number {
  const literal = LITERALS.get(bytes[at] ?? 0) ?? refuseAt(at);
  for (let offset = 0; offset < literal.length; offset += 1) {
    if (bytes[at + offset] !== literal[offset]) refuseAt(at + offset);
  }
  return at + literal.length;
}

function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= ZERO && byte <= NINE;
}

function isHex(byte: number | undefined): boolean {
  if (byte === undefined) return false;
  const lower = byte | 0x20;
  return isDigit(byte) || (lower >= 0x61 && lower <= 0x66);
}
