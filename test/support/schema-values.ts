import { type DocumentSchema, resolveSchema } from './openapi-document.js';
import type { SeededRandom } from './seeded-random.js';

/** What values are made of where a schema leaves it open. */
export interface ValueSources {
  /** Texts, of which those are taken that fit. */
  readonly texts: readonly string[];
  /** Any JSON at all. */
  anything(random: SeededRandom): unknown;
}

const TIMES = ['2026-01-31T12:00:00Z', '2026-01-31T12:00:00.123456+05:30', '2026-12-01T00:00:00-23:59'];

/**
 * A value that fits a schema of the document, at its bounds more often than chance would have it. Rules between fields
 * are no part of a schema: the API may still refuse it.
 */
export function fittingValue(schema: DocumentSchema, random: SeededRandom, sources: ValueSources): unknown {
  const known = resolveSchema(schema);
  const alternatives = known['anyOf'] as readonly DocumentSchema[] | undefined;
  if (alternatives !== undefined) return fittingValue(random.pick(alternatives), random, sources);
  if (Array.isArray(known['enum'])) return random.pick(known['enum'] as readonly unknown[]);
  const types = [known['type']].flat() as (string | undefined)[];
  switch (random.pick(types)) {
    case 'string':
      return fittingText(known, random, sources);
    case 'integer':
    case 'number':
      return fittingNumber(known, random, types.includes('integer'));
    case 'boolean':
      return random.chance(0.5);
    case 'null':
      return null;
    case 'array':
      return fittingList(known, random, sources);
    case 'object':
      return fittingObject(known, random, sources);
    default:
      return sources.anything(random);
  }
}

function fittingText(schema: DocumentSchema, random: SeededRandom, { texts }: ValueSources): string {
  if (schema['format'] === 'date-time') return random.pick(TIMES);
  const { minLength = 0, maxLength = Infinity, pattern } = schema as TextSchema;
  const form = pattern === undefined ? null : new RegExp(pattern, 'u');
  const fits = (text: string): boolean =>
    text.length >= minLength && text.length <= maxLength && (form === null || form.test(text));
  const candidates = [...texts, 'a'.repeat(Math.min(maxLength, 256)), 'a'.repeat(Math.max(minLength, 1))];
  const fitting = candidates.filter(fits);
  if (fitting.length === 0) throw new Error(`no text fits ${JSON.stringify(schema)}`);
  return random.pick(fitting);
}

interface TextSchema extends DocumentSchema {
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly pattern?: string;
}

function fittingNumber(schema: DocumentSchema, random: SeededRandom, isWhole: boolean): number {
  const [min, max] = [Number(schema['minimum'] ?? 0), Number(schema['maximum'] ?? 1_000)];
  const between = min + ((max - min) * random.below(1_001)) / 1_000;
  return random.pick([min, max, isWhole ? Math.round(between) : between]);
}

function fittingList(schema: DocumentSchema, random: SeededRandom, sources: ValueSources): unknown[] {
  const min = Number(schema['minItems'] ?? 0);
  const count = Math.min(Number(schema['maxItems'] ?? Infinity), min + random.below(4));
  const items = schema['items'] as DocumentSchema;
  return Array.from({ length: count }, () => fittingValue(items, random, sources));
}

function fittingObject(
  schema: DocumentSchema,
  random: SeededRandom,
  sources: ValueSources,
): Record<string, unknown> {
  const properties = Object.entries((schema['properties'] ?? {}) as Record<string, DocumentSchema>);
  const required = (schema['required'] ?? []) as readonly string[];
  const chosen = properties.filter(([name]) => required.includes(name) || random.chance(0.4));
  const others = schema['additionalProperties'];
  const extra =
    typeof others === 'object' && others !== null
      ? ['a', 'b', 'c'].slice(random.below(4)).map((name) => [name, others as DocumentSchema] as const)
      : [];
  return Object.fromEntries(
    [...chosen, ...extra].map(([name, field]) => [name, fittingValue(field, random, sources)]),
  );
}
