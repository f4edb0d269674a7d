import type { EgressPolicy } from './parse-egress-policy.js';

/** What the operator's lists say about a host name: allowed, denied, or not named at all. */
export type NameVerdict = 'listed' | 'denied' | 'unlisted';

/** Finds the most specific entry for a lower-case host name and port: whole name over suffix, longer over shorter. */
export function classifyName(name: string, port: number, policy: EgressPolicy): NameVerdict {
  let best = -1;
  let verdict: NameVerdict = 'unlisted';
  for (const entry of policy.names) {
    if (entry.port !== null && entry.port !== port) continue;
    if (entry.suffix ? !name.endsWith(`.${entry.name}`) : name !== entry.name) continue;
    // A name has at most 253 characters, so 1,000 puts every whole name above every suffix.
    const specificity = ((entry.suffix ? 0 : 1_000) + entry.name.length) * 2 + (entry.port === null ? 0 : 1);
    if (specificity < best || (specificity === best && verdict === 'listed')) continue;
    best = specificity;
    verdict = entry.allow ? 'listed' : 'denied';
  }
  return verdict;
}
