import type { ClientBase } from 'pg';

import { parsePart } from './twin-schema.js';

interface PlanNode extends Readonly<Partial<Record<(typeof CONDITIONS)[number], string>>> {
  readonly 'Node Type': string;
  readonly 'Relation Name'?: string;
  readonly Alias?: string;
  readonly Plans?: readonly PlanNode[];
}

/** One mention of a table of the twin in a plan, in one of its parts. */
export interface Scan {
  readonly table: string;
  readonly part: number;
  /** As the statement calls the table. */
  readonly alias: string;
  /** All conditions on the way from the outermost node to the scan. */
  readonly conditions: string;
}

const CONDITIONS = [
  'Index Cond',
  'Recheck Cond',
  'TID Cond',
  'Filter',
  'Join Filter',
  'Hash Cond',
  'Merge Cond',
] as const;

/**
 * Where a statement reads the twin, by its plan for these values. Citus plans so too; a generic plan of PostgreSQL
 * never takes `= any($1)` apart.
 */
export async function explainScans(
  client: ClientBase,
  statement: { readonly text: string; readonly values: readonly unknown[] },
): Promise<Scan[]> {
  const { rows } = await client.query<{ 'QUERY PLAN': [{ Plan: PlanNode }] }>(
    `explain (verbose, costs off, format json) ${statement.text}`,
    [...statement.values],
  );
  return scansOf(rows[0]!['QUERY PLAN'][0].Plan);
}

/** What a statement may do: stay in one part, or look over a whole place by walking the tables named. */
export type Reach = { readonly home: number } | { readonly walks: readonly string[] };

/**
 * What is wrong with how a statement reads its tables.
 * (1) One that stays at home reads no other part. Parts are dropped while planning, so one that is left says that this
 * mention of the table has no tenant predicate of its own, even where the part would never be executed.
 * (2) Every table, but for those that are walked, is joined by tenant: its tenant_id equals one value, or that of a
 * walked table or of an earlier result, directly or over other tables; or its rows are taken by their place.
 */
export function tenantFaults(scans: readonly Scan[], reach: Reach): string[] {
  const judged = scans.filter((scan) => !('walks' in reach && reach.walks.includes(scan.table)));
  const joined = aliasesJoinedByTenant(judged);
  const faults = judged.flatMap((scan) => {
    const name = `${scan.table} ${scan.alias}`;
    return [
      ...('home' in reach && scan.part !== reach.home ? [`${name} is read in foreign parts`] : []),
      ...(joined.has(scan.alias) ? [] : [`${name} is not joined by tenant`]),
    ];
  });
  return [...new Set(faults)].toSorted();
}

/** The scans below a node, with the conditions above them. */
function scansOf(node: PlanNode, above = ''): Scan[] {
  const own = CONDITIONS.map((name) => node[name] ?? '').join(' ');
  const conditions = `${above} ${own}`;
  const below = (node.Plans ?? []).flatMap((child) => scansOf(child, conditions));
  const place = parsePart(node['Relation Name'] ?? '');
  if (place === null || node['Node Type'] === 'ModifyTable') return below;
  // A part's alias is the table's with a number behind it.
  return [{ ...place, alias: (node.Alias ?? '').replace(/_\d+$/, ''), conditions }, ...below];
}

/** Two tables that are joined by tenant with each other and with nothing else are not joined. */
function aliasesJoinedByTenant(scans: readonly Scan[]): Set<string> {
  const owners = new Map(
    scans.map(({ table, alias }) => [`${alias}.${table === 'tenants' ? 'id' : 'tenant_id'}`, alias]),
  );
  // A part's alias is the table's with a number behind it.
  const conditions = scans.map((scan) => scan.conditions.replaceAll(/_\d+\./g, '.')).join(' ');
  const joined = new Set([...conditions.matchAll(/\b(\w+)\.ctid = ANY/g)].map((found) => found[1]!));
  const pairs = [...conditions.matchAll(/(?<=^|[ (])(\w+\.\w+|'[^']+'::uuid) = (\w+\.\w+|'[^']+'::uuid)/g)]
    .flatMap(([, one, other]) => [[one!, other!] as const, [other!, one!] as const])
    .filter(([one]) => owners.has(one));
  const isKnown = (side: string): boolean =>
    owners.has(side) ? joined.has(owners.get(side)!) : /^'|\.tenant_id$/.test(side);
  for (let before = -1; before < joined.size;) {
    before = joined.size;
    for (const [one, other] of pairs) if (isKnown(other)) joined.add(owners.get(one)!);
  }
  return joined;
}
