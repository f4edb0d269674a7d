import { EgressError } from './egress-error.js';
import { TOKEN } from './wire-bytes.js';

// What frames the message or names the receiver is ours alone.
const OURS = new Set([
  'host',
  'content-length',
  'transfer-encoding',
  'connection',
  'keep-alive',
  'upgrade',
  'expect',
  'te',
  'trailer',
]);
const NO_VALUE = /[^\t\x20-\x7e\x80-\xff]/;
const MAX_KNOWN_NAMES = 1_024;

/** Names that were judged before: the same ten come with each request. */
const knownNames = new Map<string, 'sent' | 'dropped' | EgressError>();

/**
 * The head of a POST as latin1 text: what a target's requests begin with, the caller's headers, the length of the body.
 * Refuses (`unsendable`) headers that frame the message, and whatever is no name or value of a header: nothing in them
 * can end a line or reach beyond latin1.
 */
export function requestHead(
  requestStart: string,
  headers: readonly (readonly [string, string])[],
  bodyBytes: number,
): string | EgressError {
  let head = requestStart;
  let values = '';
  for (const [name, value] of headers) {
    const verdict = knownNames.get(name) ?? judgeName(name);
    if (verdict instanceof EgressError) return verdict;
    if (verdict === 'dropped') continue;
    head += `${name}: ${value}\r\n`;
    values += value;
  }
  // All values at once: one search costs less than ten.
  if (NO_VALUE.test(values)) {
    return new EgressError('unsendable', 'a header value has a line break, a control character or no latin1');
  }
  return `${head}content-length: ${bodyBytes}\r\n\r\n`;
}

function judgeName(name: string): 'sent' | 'dropped' | EgressError {
  const verdict = verdictOf(name);
  if (knownNames.size >= MAX_KNOWN_NAMES) knownNames.clear();
  knownNames.set(name, verdict);
  return verdict;
}

function verdictOf(name: string): 'sent' | 'dropped' | EgressError {
  const lowerName = name.toLowerCase();
  if (!TOKEN.test(name)) return new EgressError('unsendable', 'a header has a name that no header can have');
  if (OURS.has(lowerName)) return new EgressError('unsendable', `the header ${lowerName} cannot be set`);
  // A response is kept as it came, so it must come as it is; `requestStart` says so.
  return lowerName === 'accept-encoding' ? 'dropped' : 'sent';
}
