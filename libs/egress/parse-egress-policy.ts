import ipaddr from 'ipaddr.js';
import { EMBEDDING_RANGES } from './address-ranges.js';

/** One operator entry about addresses: a range, and one port of it or all. */
export interface AddressEntry {
  readonly allow: boolean;
  readonly range: readonly [ipaddr.IPv4 | ipaddr.IPv6, number];
  readonly port: number | null;
}

/** One operator entry about names: a whole name, or (suffix) every name below one. Lower case, punycode. */
export interface NameEntry {
  readonly allow: boolean;
  readonly name: string;
  readonly suffix: boolean;
  readonly port: number | null;
}

/** Where this installation may send to. Made by `parseEgressPolicy`, never changed afterwards. */
export interface EgressPolicy {
  readonly allowHttp: boolean;
  readonly addresses: readonly AddressEntry[];
  readonly names: readonly NameEntry[];
}

/** The operator's settings as they are written down. */
export interface EgressSettings {
  readonly allow: readonly string[];
  readonly deny: readonly string[];
  readonly allowHttp: boolean;
}

type Entry = ({ kind: 'address' } & AddressEntry) | ({ kind: 'name' } & NameEntry);

const BRACKETED = /^\[([0-9A-Fa-f:.]+)\](\/\d{1,3})?(?::(\d{1,5}))?$/;
const WITH_PORT = /^([^:]+?)(?::(\d{1,5}))?$/;
const NAME = /^(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.)*[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/;

/**
 * Reads the operator's lists. An entry is `10.0.0.0/8`, `10.1.2.3:8080`, `fd00::/8`, `[::1]/128:443` (IPv6 takes a port
 * in brackets only), `name`, `name:port` or `*.suffix` with or without a port. Throws one error naming every bad entry.
 */
export function parseEgressPolicy({ allow, deny, allowHttp }: EgressSettings): EgressPolicy {
  const addresses: AddressEntry[] = [];
  const names: NameEntry[] = [];
  const faults: string[] = [];
  for (const [texts, allowed] of [[allow, true] as const, [deny, false] as const]) {
    for (const text of texts) {
      const entry = parseEntry(text, allowed);
      if (typeof entry === 'string')
        faults.push(`${allowed ? 'allow' : 'deny'} entry ${JSON.stringify(text)}: ${entry}`);
      else if (entry.kind === 'address') addresses.push(entry);
      else names.push(entry);
    }
  }
  if (faults.length > 0) throw new Error(`the egress policy has bad entries: ${faults.join('; ')}`);
  return { allowHttp, addresses, names };
}

function parseEntry(text: string, allow: boolean): Entry | string {
  const bracketed = BRACKETED.exec(text);
  if (bracketed) return addressEntry(`${bracketed[1]}${bracketed[2] ?? ''}`, bracketed[3], allow);
  if (text.split(':').length > 2) return addressEntry(text, undefined, allow);
  const match = WITH_PORT.exec(text);
  if (!match) return 'not CIDR[:port], name[:port] or *.suffix';
  const [, host = '', port] = match;
  return /^[\d.]+(?:\/\d+)?$/.test(host) ? addressEntry(host, port, allow) : nameEntry(host, port, allow);
}

function addressEntry(text: string, portText: string | undefined, allow: boolean): Entry | string {
  const port = parsePort(portText);
  if (port === undefined) return 'a port lies in 1 to 65535';
  // ipaddr.js also reads octal, hex and short forms: an entry is written in full, so that nobody allows a surprise.
  const [address = '', prefix] = text.split('/');
  const full = address.includes(':')
    ? ipaddr.IPv6.isValid(address)
    : ipaddr.IPv4.isValidFourPartDecimal(address);
  if (!full) return 'not an IP address written in full';
  const parsed = ipaddr.parse(address);
  const bits = parsed.kind() === 'ipv4' ? 32 : 128;
  const length = prefix === undefined ? bits : Number(prefix);
  if (length > bits) return `a prefix of this family has at most ${bits} bits`;
  if (allow && liesInEmbedding(parsed, length))
    return 'IPv6 that embeds IPv4 can never be allowed; list the IPv4 range';
  return { kind: 'address', allow, range: [parsed, length], port };
}

function nameEntry(text: string, portText: string | undefined, allow: boolean): Entry | string {
  const port = parsePort(portText);
  if (port === undefined) return 'a port lies in 1 to 65535';
  const suffix = text.startsWith('*.');
  const name = (suffix ? text.slice(2) : text).toLowerCase();
  if (!NAME.test(name) || name.length > 253) return 'not a host name (international names in punycode)';
  return { kind: 'name', allow, name, suffix, port };
}

/** The port, null when the entry names none, undefined when it is impossible. */
function parsePort(text: string | undefined): number | null | undefined {
  if (text === undefined) return null;
  const port = Number(text);
  return port >= 1 && port <= 65_535 ? port : undefined;
}

function liesInEmbedding(address: ipaddr.IPv4 | ipaddr.IPv6, length: number): boolean {
  return EMBEDDING_RANGES.some(([network, bits]) => {
    return (
      address.kind() === 'ipv6' && length >= bits && !isLoopback(address) && address.match(network, bits)
    );
  });
}

function isLoopback(address: ipaddr.IPv4 | ipaddr.IPv6): boolean {
  return address.range() === 'loopback';
}
