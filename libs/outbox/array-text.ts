const SPECIAL = /["\\]/g;

/**
 * An array of texts as PostgreSQL reads one. pg would make the same of an array, but takes two regular expressions an
 * element for it: of a group of 64 events that was more time than the statement's round trip.
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
