import type { Bounds } from '#endpoints';
import type { Word } from '../schema.js';

/** Words by the name of their field; `Owner.field` adds to a word what is so in one schema alone. */
export type Words = Readonly<Record<string, Word>>;

/** A whole number from 0. */
export const count = (description: string, example: number): Word => ({
  description,
  type: 'integer',
  minimum: 0,
  examples: [example],
});

/** A time by RFC 3339. */
export const time = (description: string, example: string | null = '2026-01-31T12:00:00.000Z'): Word => ({
  description,
  format: 'date-time',
  examples: [example],
});

/** Text without a form of its own. */
export const text = (description: string, example: string | null): Word => ({
  description,
  examples: [example],
});

/** A number within bounds. */
export const within = (
  description: string,
  { min, max, whole = false }: Bounds,
  example: number | null,
): Word => ({
  description,
  ...(whole ? { type: 'integer' } : {}),
  minimum: min,
  maximum: max,
  examples: [example],
});

/** Words that are so in some schemas alone, and the same in each of these. */
export const wherever = (owners: readonly string[], words: Words): Words =>
  Object.fromEntries(
    owners.flatMap((owner) => Object.entries(words).map(([name, word]) => [`${owner}.${name}`, word])),
  );
