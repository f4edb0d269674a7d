const SPECIAL = /["\\]/g;

/**
 * An array of texts as PostgreSQL reads one. pg would make the same of an array, by two regular expressions an element;
 * a group has ten arrays.
 */
export function arrayText(values: readonly (string | null)[]): string {
  return `{${values.map((value) => (value === null ? 'NULL' : quoted(value))).join()}}`;
}

/** The same of values that need no quotes: numbers, and ids, which are hex digits and hyphens. */
export function plainArrayText(values: readonly (string | number)[]): string {
  return `{${values.join()}}`;
}

function quoted(text: string): string {
  return `"${text.replace(SPECIAL, String.raw`\$&`)}"`;
}
