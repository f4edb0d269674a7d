import net from 'node:net';
import { BAD_PORTS } from './bad-ports.js';
import { classifyAddress } from './classify-address.js';
import { classifyName } from './classify-name.js';
import type { EgressPolicy } from './parse-egress-policy.js';

/** Why a URL is refused. `http_not_allowed`, `forbidden_host` and `forbidden_address` depend on the policy. */
export type UrlFault =
  | 'too_long'
  | 'bad_characters'
  | 'bad_scheme'
  | 'http_not_allowed'
  | 'bad_syntax'
  | 'has_credentials'
  | 'has_fragment'
  | 'bad_port'
  | 'bad_host'
  | 'forbidden_host'
  | 'forbidden_address';

/** The canonical URL to store, or the reason for a refusal in a word for programs and a sentence for people. */
export type UrlVerdict = { ok: true; url: string } | { ok: false; reason: UrlFault; detail: string };

/** Characters in a URL. */
export const URL_CHARACTERS_MAX = 2_048;

// Control characters, every kind of space, lone surrogates and the backslash: the parser strips or repairs them, so
// what a person read would not be what is called.
const BAD_CHARACTERS = /[\p{Cc}\p{Zs}\p{Zl}\p{Zp}\p{Cs}\\]/u;
const SHAPE = /^(https?):\/\/([^/?]+)/i;
const LABEL = /^[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?$/;
const SPECIAL_USE = ['localhost', 'local', 'internal', 'home.arpa', 'arpa', 'onion', 'invalid'];

/**
 * Judges a destination before it is stored, and gives its canonical form. Nothing is resolved: a name that passes here
 * may still be refused when it is connected to.
 */
export function checkUrl(raw: string, policy: EgressPolicy): UrlVerdict {
  if (raw.length > URL_CHARACTERS_MAX)
    return refuse('too_long', `a URL has at most ${URL_CHARACTERS_MAX} characters`);
  if (BAD_CHARACTERS.test(raw))
    return refuse('bad_characters', 'a URL has no spaces, control characters or backslashes');
  if (!/^https?:/i.test(raw)) return refuse('bad_scheme', 'a URL starts with https:// or http://');
  if (raw.includes('#')) return refuse('has_fragment', 'a URL has no fragment');
  const shape = SHAPE.exec(raw);
  if (!shape) return refuse('bad_syntax', 'two slashes and a host follow the scheme');
  const [, scheme = '', authority = ''] = shape;
  if (authority.includes('@')) return refuse('has_credentials', 'a URL has no user name or password');
  if (authority.includes('%')) return refuse('bad_host', 'a host has no percent signs');
  if (scheme.toLowerCase() === 'http' && !policy.allowHttp) {
    return refuse('http_not_allowed', 'only https is allowed here');
  }
  if (!URL.canParse(raw)) return refuse('bad_syntax', 'the host or port cannot be read');
  return checkParsed(new URL(raw), policy);
}

function checkParsed(url: URL, policy: EgressPolicy): UrlVerdict {
  const port = portOf(url);
  if (BAD_PORTS.has(port)) return refuse('bad_port', `port ${port} is not for webhooks`);
  const literal = url.hostname.startsWith('[') ? url.hostname.slice(1, -1) : url.hostname;
  if (net.isIP(literal) !== 0) {
    const verdict = classifyAddress(literal, port, policy);
    if (!verdict.ok) return refuse('forbidden_address', `the address is not allowed: ${verdict.why}`);
  } else {
    if (url.hostname.endsWith('.')) url.hostname = url.hostname.slice(0, -1);
    const fault = checkName(url.hostname, port, policy);
    if (fault) return fault;
  }
  return url.href.length > URL_CHARACTERS_MAX
    ? refuse('too_long', `a URL has at most ${URL_CHARACTERS_MAX} characters in its encoded form`)
    : { ok: true, url: url.href };
}

function checkName(name: string, port: number, policy: EgressPolicy): UrlVerdict | null {
  const labels = name.split('.');
  if (name.length > 253 || !labels.every((label) => label.length <= 63 && LABEL.test(label))) {
    return refuse('bad_host', 'a host name has labels of 1 to 63 letters, digits, hyphens and underscores');
  }
  const verdict = classifyName(name, port, policy);
  if (verdict === 'listed') return null;
  if (verdict === 'denied') return refuse('forbidden_host', 'the host is denied by the operator');
  if (labels.length < 2) return refuse('forbidden_host', 'a host name has at least two labels');
  if (/^\d+$/.test(labels.at(-1) ?? ''))
    return refuse('bad_host', 'the last label of a host name is no number');
  const special = SPECIAL_USE.find((suffix) => name === suffix || name.endsWith(`.${suffix}`));
  return special === undefined ? null : refuse('forbidden_host', `names under ${special} are not public`);
}

/** The port a URL leads to, its scheme's own where it names none. */
export function portOf(url: URL): number {
  if (url.port !== '') return Number(url.port);
  return url.protocol === 'https:' ? 443 : 80;
}

function refuse(reason: UrlFault, detail: string): UrlVerdict & { ok: false } {
  return { ok: false, reason, detail };
}
