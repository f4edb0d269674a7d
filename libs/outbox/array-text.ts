/**
 * An array as PostgreSQL reads it, made in one go: the driver would make the same of an array by two regular expressions an
 * item, and a record has 28 arrays. Only for items that need no quoting: ids, numbers, names of ours.
 */
export function plainArray(items: readonly (string | number | boolean | null)[]): string {
  return `{${items.map((item) => item ?? 'null').join(',')}}`;
}

/** The same for texts of any content and bytes. */
export function quotedArray(items: readonly (string | Buffer | null)[]): string {
  return `{${items.map(quoted).join(',')}}`;
}

const SPECIAL = /["\\]/g;

function quoted(item: string | Buffer | null): string {
  if (item === null) return 'NULL';
  if (typeof item !== 'string') return `"\\\\x${item.toString('hex')}"`;
  return `"${item.replace(SPECIAL, String.raw`\$&`)}"`;
}

/** The items of such an array that PostgreSQL gave as text; none for null. Not for items that need quoting. */
export function arrayItems(text: string | null): string[] {
  return text === null || text === '{}' ? [] : text.slice(1, -1).split(',');
}
