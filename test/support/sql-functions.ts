import type { Pool } from 'pg';

/**
 * The part of a statement that writes: all of it, or what stands before the select that only shows what was written.
 * Empty for a statement that only reads.
 */
export function writingPart(text: string): string {
  const bare = text.replaceAll(/--[^\n]*/g, '');
  if (!/\b(insert into|update|delete from)\b/.test(bare.replaceAll('for update', ''))) return '';
  let depth = 0;
  let main = 0;
  for (const match of bare.matchAll(/[()]|\b(?:select|insert into|update|delete from)\b/g)) {
    if (match[0] === '(') depth += 1;
    else if (match[0] === ')') depth -= 1;
    else if (depth === 0 && main === 0) main = match.index;
  }
  return bare.slice(main).startsWith('select') ? bare.slice(0, main) : bare;
}

/** The volatile functions that a piece of SQL calls, by name; of functions that share a name, any one counts. */
export async function volatileFunctionsIn(pool: Pool, sql: string): Promise<string[]> {
  const called = [...sql.matchAll(/([a-z_][a-z0-9_]*)\s*\(/g)].map((match) => match[1]!);
  const { rows } = await pool.query<{ name: string }>(
    `select distinct proname::text as name from pg_proc
     where proname = any($1::text[]) and provolatile = 'v' order by 1`,
    [[...new Set(called)]],
  );
  return rows.map(({ name }) => name);
}
