import net from 'node:net';
import ipaddr from 'ipaddr.js';
import { EMBEDDING_RANGES, REFUSED_RANGES, type AddressRange } from './address-ranges.js';
import type { EgressPolicy } from './parse-egress-policy.js';

/** `listed` was allowed by an operator's entry, `public` needs none; `why` names the kind of range that forbids. */
export type AddressVerdict = { ok: true; by: 'listed' | 'public' } | { ok: false; why: string };

/**
 * Says whether a connection to this address and port may be made. The most specific entry wins, at equal width the
 * operator's over the built-in and allow over deny. Whatever is not clearly a public unicast address is refused.
 */
export function classifyAddress(address: string, port: number, policy: EgressPolicy): AddressVerdict {
  // net.isIP first: ipaddr.js also reads octal and short forms, which a resolver never answers.
  if (net.isIP(address) === 0 || address.includes('%')) return { ok: false, why: 'not an address' };
  const parsed = ipaddr.parse(address);
  const range = parsed.range();
  if (range !== 'loopback' && EMBEDDING_RANGES.some((embedding) => contains(embedding, parsed))) {
    return { ok: false, why: 'embeds an IPv4 address' };
  }
  const refusedBits = narrowestRefusal(parsed, range);
  let best = refusedBits * 2;
  let allow: boolean | null = null;
  for (const entry of policy.addresses) {
    if (entry.port !== null && entry.port !== port) continue;
    if (!contains(entry.range, parsed)) continue;
    // An entry for one port is more specific than its range for all ports, less than the next longer prefix.
    const specificity = entry.range[1] * 2 + (entry.port === null ? 0 : 1);
    if (specificity < best || (specificity === best && allow === true)) continue;
    best = specificity;
    allow = entry.allow;
  }
  if (allow === true) return { ok: true, by: 'listed' };
  if (allow === false) return { ok: false, why: 'denied by the operator' };
  return refusedBits >= 0
    ? { ok: false, why: range === 'unicast' ? 'reserved' : range }
    : { ok: true, by: 'public' };
}

/** The longest built-in refused prefix that holds the address, -1 for none. */
function narrowestRefusal(address: ipaddr.IPv4 | ipaddr.IPv6, range: string): number {
  let bits = -1;
  for (const refused of REFUSED_RANGES) {
    if (refused[1] > bits && contains(refused, address)) bits = refused[1];
  }
  // A range that ipaddr.js learns after our table was written: refused, and opened by a whole address only.
  if (bits === -1 && range !== 'unicast') return address.kind() === 'ipv4' ? 32 : 128;
  return bits;
}

function contains([network, bits]: AddressRange, address: ipaddr.IPv4 | ipaddr.IPv6): boolean {
  return network.kind() === address.kind() && address.match(network, bits);
}
