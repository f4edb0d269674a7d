import { AppError } from '#runtime';
import { readTime } from './read-time.js';

/** A list as one tenant sees it: what a cursor belongs to. */
export interface TenantList {
  readonly name: string;
  readonly tenantId: string;
}

/** The part of a list that is asked for: so many rows, after the row of this key. */
export interface Page<Key extends readonly string[]> {
  readonly limit: number;
  readonly after: Key | null;
}

/** How the parts of a list's key look; anything else was not made by that list. */
export type KeyShape = readonly ('uuid' | 'time')[];

/** How many a page holds when nobody says, and at most; how long a cursor may be. */
export const LIMIT_DEFAULT = 50;
export const LIMIT_MAX = 100;
export const CURSOR_CHARACTERS_MAX = 512;
const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Reads `limit` and `cursor` of a query; throws `invalid_limit` or `invalid_cursor`. */
export function readPage<Key extends readonly string[]>(
  list: TenantList,
  shape: KeyShape,
  query: { readonly limit?: unknown; readonly cursor?: unknown },
): Page<Key> {
  return {
    limit: readLimit(query.limit),
    after: query.cursor === undefined ? null : (readCursor(list, shape, query.cursor) as unknown as Key),
  };
}

/** One page of answers from up to `limit + 1` rows; the cursor is there only when more follow. */
export function toPage<Row, View>(
  list: TenantList,
  rows: readonly Row[],
  limit: number,
  keyOf: (row: Row) => readonly string[],
  toView: (row: Row) => View,
): { data: View[]; next_cursor: string | null } {
  const data = rows.slice(0, limit);
  const last = data.at(-1);
  const more = rows.length > limit && last !== undefined;
  return { data: data.map(toView), next_cursor: more ? formatCursor(list, keyOf(last)) : null };
}

/** A cursor: the list, whose it is, and the key of the last row shown. */
export function formatCursor({ name, tenantId }: TenantList, key: readonly string[]): string {
  return Buffer.from(JSON.stringify([name, tenantId, ...key])).toString('base64url');
}

function readLimit(text: unknown): number {
  if (text === undefined) return LIMIT_DEFAULT;
  const limit = typeof text === 'string' && /^[0-9]{1,3}$/.test(text) ? Number(text) : 0;
  if (limit < 1 || limit > LIMIT_MAX) throw new AppError('invalid_limit');
  return limit;
}

function readCursor({ name, tenantId }: TenantList, shape: KeyShape, text: unknown): string[] {
  const parts = typeof text === 'string' && text.length <= CURSOR_CHARACTERS_MAX ? decode(text) : null;
  if (
    parts === null ||
    parts.length !== shape.length + 2 ||
    parts[0] !== name ||
    parts[1] !== tenantId ||
    !shape.every((kind, index) => fits(kind, parts[index + 2]))
  ) {
    throw new AppError('invalid_cursor');
  }
  return parts.slice(2) as string[];
}

function decode(text: string): unknown[] | null {
  const bytes = Buffer.from(text, 'base64url');
  // Node's decoder skips what it does not know: only a text that it gives back was a cursor.
  if (bytes.toString('base64url') !== text) return null;
  try {
    const parts: unknown = JSON.parse(bytes.toString('utf8'));
    return Array.isArray(parts) ? parts : null;
  } catch {
    return null;
  }
}

function fits(kind: 'uuid' | 'time', part: unknown): boolean {
  if (typeof part !== 'string') return false;
  return kind === 'uuid' ? UUID.test(part) : readTime(part) !== null;
}
