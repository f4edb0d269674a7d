import { AppError } from '#runtime';
import { scanJson, type JsonNode } from '../http/scan-json.js';
import { isNull, refusal } from './json-value.js';

/** How much metadata an event may carry. */
export const ENTRIES_MAX = 16;
export const KEY_CHARACTERS_MAX = 64;
export const VALUE_CHARACTERS_MAX = 512;
const UNPRINTABLE = /[\p{Cc}\p{Cs}]/u;

// Escaped to the last character, with white space to spare.
const BYTES_MAX = ENTRIES_MAX * (KEY_CHARACTERS_MAX + VALUE_CHARACTERS_MAX) * 6 + 4_096;

/**
 * Metadata as compact JSON: an object of at most 16 printable strings. No control characters and no lone surrogates,
 * which the database could not keep.
 */
export function readMetadata(bytes: Buffer, node: JsonNode | undefined, path: string): string | null {
  if (node === undefined || isNull(bytes, node)) return null;
  const field = `${path}metadata`;
  if (node.kind !== 'object' || node.end - node.start > BYTES_MAX) throw malformed(field);
  const text = bytes.subarray(node.start, node.end);
  const { fields } = scanJson(text);
  if (fields === null) throw malformed(field);
  return JSON.stringify(checkMetadata(JSON.parse(text.toString('utf8')), field));
}

/** The same rules for a value that was parsed already; throws `validation_failed`. */
export function checkMetadata(value: unknown, field: string): Record<string, string> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw malformed(field);
  const entries: readonly [string, unknown][] = Object.entries(value);
  const good = ([name, text]: readonly [string, unknown]): boolean =>
    printable(name, 1, KEY_CHARACTERS_MAX) &&
    typeof text === 'string' &&
    printable(text, 0, VALUE_CHARACTERS_MAX);
  if (entries.length > ENTRIES_MAX || !entries.every(good)) throw malformed(field);
  return value as Record<string, string>;
}

function printable(text: string, min: number, max: number): boolean {
  return text.length >= min && text.length <= max && !UNPRINTABLE.test(text);
}

function malformed(field: string): AppError {
  const rule =
    `metadata is an object of at most ${ENTRIES_MAX} strings: names of 1 to ${KEY_CHARACTERS_MAX}, ` +
    `values of at most ${VALUE_CHARACTERS_MAX} characters, no control characters.`;
  return refusal('validation_failed', field, rule);
}
