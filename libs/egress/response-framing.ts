import { EgressError } from './egress-error.js';
import { CONNECTION, CONTENT_LENGTH, KEEP_ALIVE, TRANSFER_ENCODING } from './field-names.js';

/** How long an unused connection is kept. Most servers close theirs after 5 s or more; ours goes first. */
export const KEEP_ALIVE_MS = 4_000;
// What a receiver says it keeps is over a little earlier for us, so that no request meets its close.
const KEEP_ALIVE_MARGIN_MS = 1_000;

/** Where a response ends, and how long its connection may wait for the next request (0: not at all). */
export interface Framing {
  /** Bytes of the body; Infinity: until the connection closes; null: in chunks. */
  readonly length: number | null;
  readonly keepMs: number;
}

/** Reads a response's framing by RFC 9112, 6.3; or says what is wrong with it. `values` are a head's, by field number. */
export function frameResponse(
  status: number,
  minor: number,
  values: readonly (string | null)[],
): Framing | EgressError {
  const coding = values[TRANSFER_ENCODING] ?? null;
  const length = values[CONTENT_LENGTH] ?? null;
  if (status === 204 || status === 304) {
    // They end with their head whatever it says; but some servers send what they announced all the same.
    const isBare = coding === null && (length === null || length === '0');
    return { length: 0, keepMs: isBare ? keepMsOf(minor, values) : 0 };
  }
  if (coding !== null) {
    const codings = listed(coding);
    if (codings.at(-1) !== 'chunked') return { length: Number.POSITIVE_INFINITY, keepMs: 0 };
    // A length beside chunks, HTTP/1.0 or more codings: where it ends for others is not sure, so nothing follows (6.1).
    const isPlain = codings.length === 1 && length === null && minor === 1;
    return { length: null, keepMs: isPlain ? keepMsOf(minor, values) : 0 };
  }
  if (length === null) return { length: Number.POSITIVE_INFINITY, keepMs: 0 };
  const bytes = lengthOf(length);
  if (Number.isNaN(bytes)) return new EgressError('protocol_error', 'the content-length is broken');
  return { length: bytes, keepMs: keepMsOf(minor, values) };
}

/** NaN for what is no length, or several that differ. */
function lengthOf(value: string): number {
  const [first = '', ...others] = value.includes(',') ? listed(value) : [value];
  const bytes = /^\d+$/.test(first) && others.every((other) => other === first) ? Number(first) : Number.NaN;
  return Number.isSafeInteger(bytes) ? bytes : Number.NaN;
}

function keepMsOf(minor: number, values: readonly (string | null)[]): number {
  const connection = values[CONNECTION] ?? null;
  const options = connection === null ? [] : listed(connection);
  if (options.includes('close') || (minor === 0 && !options.includes('keep-alive'))) return 0;
  const seconds = /(?:^|[\s,])timeout *= *"?(\d+)/i.exec(values[KEEP_ALIVE] ?? '')?.[1];
  if (seconds === undefined) return KEEP_ALIVE_MS;
  return Math.max(0, Math.min(KEEP_ALIVE_MS, Number(seconds) * 1_000 - KEEP_ALIVE_MARGIN_MS));
}

function listed(value: string): string[] {
  return value.split(',').map((item) => item.trim().toLowerCase());
}
