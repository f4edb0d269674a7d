import { EgressError } from './egress-error.js';

// What frames the message or names the receiver is ours alone: undici would take `host` from here for TLS as well, and
// refuses some of the others only by throwing.
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

/** Turns header pairs into the flat list that undici takes, adding `accept-encoding: identity`; refuses framing headers. */
export function flattenHeaders(headers: readonly (readonly [string, string])[]): string[] | EgressError {
  const flat = ['accept-encoding', 'identity'];
  for (const [name, value] of headers) {
    const lowerName = name.toLowerCase();
    if (OURS.has(lowerName)) return new EgressError('unsendable', `the header ${lowerName} cannot be set`);
    if (lowerName !== 'accept-encoding') flat.push(name, value);
  }
  return flat;
}
