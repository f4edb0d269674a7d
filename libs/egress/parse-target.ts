import net from 'node:net';
import type { AttemptErrorKind } from './attempt-result.js';
import { checkUrl, portOf } from './check-url.js';
import { EgressError } from './egress-error.js';
import type { EgressPolicy } from './parse-egress-policy.js';

/** A destination ready to connect to: the URL taken apart, once for many attempts. */
export interface Target {
  readonly origin: string;
  /** What every request to it begins with: the request line, and the headers that are the same each time. */
  readonly requestStart: string;
  /** Name or address, IPv6 without brackets. */
  readonly host: string;
  readonly port: number;
  readonly tls: boolean;
  readonly isLiteral: boolean;
}

/** Takes a stored URL apart, or says why it is not sent to. What the policy refuses may pass later, the rest never. */
export function parseTarget(stored: string, policy: EgressPolicy): Target | EgressError {
  const verdict = checkUrl(stored, policy);
  if (!verdict.ok) {
    const byPolicy = ['http_not_allowed', 'forbidden_host', 'forbidden_address'].includes(verdict.reason);
    const kind: AttemptErrorKind = byPolicy ? 'egress_blocked' : 'unsendable';
    return new EgressError(kind, `the stored URL is refused: ${verdict.detail}`);
  }
  const url = new URL(verdict.url);
  const host = url.hostname.startsWith('[') ? url.hostname.slice(1, -1) : url.hostname;
  const path = url.pathname + url.search;
  return {
    origin: url.origin,
    requestStart: `POST ${path} HTTP/1.1\r\nhost: ${url.host}\r\nconnection: keep-alive\r\naccept-encoding: identity\r\n`,
    host,
    port: portOf(url),
    tls: url.protocol === 'https:',
    isLiteral: net.isIP(host) !== 0,
  };
}
