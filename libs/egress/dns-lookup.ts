import dns from 'node:dns';
import { classifyName } from './classify-name.js';
import type { EgressPolicy } from './parse-egress-policy.js';

/** One answer of a lookup. */
export interface LookupAddress {
  readonly address: string;
  readonly family: number;
}

/** Finds all addresses of a host name, or rejects with an error whose `code` is one of node:dns. */
export type Lookup = (host: string) => Promise<readonly LookupAddress[]>;

const QUERY_TIMEOUT_MS = 2_000;
const QUERY_TRIES = 2;

/**
 * Makes the lookup of the product. Names that tenants chose are asked of the name servers directly: getaddrinfo would
 * hold one of four threads for each dead name, and search domains and the hosts file must not answer for strangers.
 * Names the operator listed are looked up like any other program would (hosts file, Docker, localhost).
 */
export function createDnsLookup(policy: EgressPolicy, servers: readonly string[] = []): Lookup {
  const resolver = new dns.promises.Resolver({ timeout: QUERY_TIMEOUT_MS, tries: QUERY_TRIES });
  if (servers.length > 0) resolver.setServers(servers);
  const listed = { ...policy, names: policy.names.map((entry) => ({ ...entry, port: null })) };
  return (host) => {
    if (classifyName(host, 0, listed) === 'listed')
      return dns.promises.lookup(host, { all: true, verbatim: true });
    return queryBothFamilies(resolver, host);
  };
}

async function queryBothFamilies(resolver: dns.promises.Resolver, host: string): Promise<LookupAddress[]> {
  const [v4, v6] = await Promise.allSettled([resolver.resolve4(host), resolver.resolve6(host)]);
  const answers: LookupAddress[] = [];
  if (v4.status === 'fulfilled') for (const address of v4.value) answers.push({ address, family: 4 });
  if (v6.status === 'fulfilled') for (const address of v6.value) answers.push({ address, family: 6 });
  if (answers.length > 0) return answers;
  // "No such record" of one family says less than the other's failure.
  const errors = [v4, v6].flatMap((outcome) =>
    outcome.status === 'rejected' ? [outcome.reason as unknown] : [],
  );
  throw (
    errors.find((error) => !isNoAnswer(error)) ??
    errors[0] ??
    Object.assign(new Error('no address'), { code: 'ENODATA' })
  );
}

function isNoAnswer(error: unknown): boolean {
  return (
    error instanceof Error && 'code' in error && (error.code === 'ENOTFOUND' || error.code === 'ENODATA')
  );
}
