import ipaddr from 'ipaddr.js';

/** A network and its prefix length. */
export type AddressRange = readonly [ipaddr.IPv4 | ipaddr.IPv6, number];

/** IPv6 forms that carry an IPv4 address inside: mapped, compatible, translated, NAT64, 6to4, Teredo. They never pass. */
export const EMBEDDING_RANGES: readonly AddressRange[] = parse([
  '::ffff:0:0/96',
  '::ffff:0:0:0/96',
  '::/96',
  '64:ff9b::/96',
  '64:ff9b:1::/48',
  '2002::/16',
  '2001::/32',
]);

/**
 * What is refused unless an operator's entry is at least as specific. ipaddr.js names most of these ranges but not how
 * wide they are, and takes ::/96, 2001::/23 and 168.63.129.16 (Azure's metadata) for ordinary addresses.
 */
export const REFUSED_RANGES: readonly AddressRange[] = parse([
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '168.63.129.16/32',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.31.196.0/24',
  '192.52.193.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '192.175.48.0/24',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/4',
  '240.0.0.0/4',
  '255.255.255.255/32',
  '::/128',
  '::1/128',
  '::/96',
  '100::/64',
  '2001::/23',
  '2001:db8::/32',
  '2620:4f:8000::/48',
  '3fff::/20',
  '5f00::/16',
  'fc00::/7',
  'fe80::/10',
  'fec0::/10',
  'ff00::/8',
]);

function parse(ranges: readonly string[]): AddressRange[] {
  return ranges.map((range) => ipaddr.parseCIDR(range));
}
