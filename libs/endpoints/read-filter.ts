import { readFields, refuseField } from './read-field.js';

/** What a filter compares a payload's value with. */
export type FilterValue = string | number | boolean | null;

/** A condition on payloads: every one of its entries must hold. Stored and shown as it was given. */
export type Filter = object;

/** A filter with the jsonpath predicate that PostgreSQL decides it by. */
export interface CompiledFilter {
  readonly filter: Filter;
  readonly path: string;
}

export const FILTER_LIMITS = {
  /** Filters inside filters: `$and`, `$or`, `$not`. */
  depthMax: 8,
  /** Comparisons in all of it, and existences. */
  conditionsMax: 50,
  /** Values in all its lists: each is a comparison too. */
  valuesMax: 100,
  segmentsMax: 16,
  textMax: 256,
};

const GROUPS = ['$and', '$or'] as const;

/** The comparisons, as jsonpath writes them about \`@\`, one value that the path leads to. */
const COMPARISONS: Readonly<Record<string, (literal: string) => string>> = {
  $eq: (literal) => `@ == ${literal}`,
  $gt: (literal) => `@ > ${literal}`,
  $gte: (literal) => `@ >= ${literal}`,
  $lt: (literal) => `@ < ${literal}`,
  $lte: (literal) => `@ <= ${literal}`,
  $startsWith: (literal) => `@ starts with ${literal}`,
};
const ORDERED = ['$gt', '$gte', '$lt', '$lte'];
const OPERATORS = [...Object.keys(COMPARISONS), '$ne', '$in', '$nin', '$exists'];

/** What is left of the limits while a filter is read. */
interface Reading {
  conditions: number;
  values: number;
}

/**
 * The filter to store for what a caller asked for; null stands for none. Throws `validation_failed` or `unknown_field`,
 * naming the place. Only a closed set of operators gets through, each with values of its kind, so that the predicate is
 * built of fixed pieces, quoted names and quoted values; there are no regular expressions.
 */
export function readFilter(value: unknown): CompiledFilter | null {
  if (value === null) return null;
  const path = compileFilter(value, 'filter', 1, { conditions: 0, values: 0 });
  return { filter: value as Filter, path };
}

function compileFilter(value: unknown, field: string, depth: number, reading: Reading): string {
  if (depth > FILTER_LIMITS.depthMax)
    throw refuseField(field, `must not be nested deeper than ${FILTER_LIMITS.depthMax}`);
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw refuseField(field, 'must be an object');
  const entries = Object.entries(value) as [string, unknown][];
  if (entries.length === 0) throw refuseField(field, 'must have at least one condition');
  return both(
    entries.map(([name, asked]) => {
      const at = `${field}.${name.slice(0, 100)}`;
      const group = GROUPS.find((known) => known === name);
      if (group !== undefined) return compileGroup(group, asked, at, depth, reading);
      if (name === '$not') return `!(${compileFilter(asked, at, depth + 1, reading)})`;
      if (name.startsWith('$'))
        throw refuseField(at, `must be a path, or one of ${[...GROUPS, '$not'].join(', ')}`);
      return compileConditions(accessorOf(name, at), asked, at, reading);
    }),
  );
}

function compileGroup(
  group: (typeof GROUPS)[number],
  asked: unknown,
  field: string,
  depth: number,
  reading: Reading,
): string {
  if (!Array.isArray(asked) || asked.length === 0)
    throw refuseField(field, 'must be a list of at least one filter');
  const parts = asked.map((filter: unknown, index) =>
    compileFilter(filter, `${field}[${index}]`, depth + 1, reading),
  );
  return group === '$and' ? both(parts) : either(parts);
}

/** What stands behind a path: a value that it must equal, or operators that must all hold. */
function compileConditions(accessor: string, asked: unknown, field: string, reading: Reading): string {
  if (typeof asked !== 'object' || asked === null) return compare(accessor, '$eq', asked, field, reading);
  if (Array.isArray(asked)) throw refuseField(field, 'must be a value or an object of operators');
  const operators = Object.entries(readFields(asked, field, OPERATORS));
  if (operators.length === 0) throw refuseField(field, 'must have at least one operator');
  return both(
    operators.map(([operator, operand]) =>
      compileOperator(accessor, operator, operand, `${field}.${operator}`, reading),
    ),
  );
}

function compileOperator(
  accessor: string,
  operator: string,
  operand: unknown,
  field: string,
  reading: Reading,
): string {
  if (operator === '$exists') {
    count(reading, field);
    if (typeof operand !== 'boolean') throw refuseField(field, 'must be true or false');
    return operand ? `exists(${accessor})` : `!exists(${accessor})`;
  }
  if (operator === '$ne') return `!(${compare(accessor, '$eq', operand, field, reading)})`;
  if (operator !== '$in' && operator !== '$nin') return compare(accessor, operator, operand, field, reading);
  const { valuesMax } = FILTER_LIMITS;
  if (!Array.isArray(operand) || operand.length === 0 || operand.length > valuesMax)
    throw refuseField(field, `must be a list of 1 to ${valuesMax} values`);
  count(reading, field);
  reading.values += operand.length;
  if (reading.values > valuesMax)
    throw refuseField(field, `has too many values: the lists of a filter have at most ${valuesMax} in all`);
  const any = operand.map((value: unknown, index) => `@ == ${literalOf(value, `${field}[${index}]`)}`);
  const among = `exists(${accessor} ? (${either(any)}))`;
  return operator === '$in' ? among : `!(${among})`;
}

/**
 * True where any value that the path leads to compares so, else false: a comparison of kinds that have no order is
 * unknown in jsonpath, and a filter expression takes only what is true. Thus negation is plain.
 */
function compare(
  accessor: string,
  operator: string,
  operand: unknown,
  field: string,
  reading: Reading,
): string {
  count(reading, field);
  const literal = literalOf(operand, field);
  if (operator === '$startsWith' && typeof operand !== 'string') throw refuseField(field, 'must be a string');
  if (ORDERED.includes(operator) && typeof operand !== 'string' && typeof operand !== 'number')
    throw refuseField(field, 'must be a number or a string');
  return `exists(${accessor} ? (${COMPARISONS[operator]!(literal)}))`;
}

function count(reading: Reading, field: string): void {
  reading.conditions += 1;
  if (reading.conditions > FILTER_LIMITS.conditionsMax)
    throw refuseField(
      field,
      `is one too many: a filter has at most ${FILTER_LIMITS.conditionsMax} conditions`,
    );
}

/** `a.b` as \`$."a"."b"\`: every segment a name, also one of digits. */
function accessorOf(path: string, field: string): string {
  const segments = path.split('.');
  if (segments.length > FILTER_LIMITS.segmentsMax)
    throw refuseField(field, `must have at most ${FILTER_LIMITS.segmentsMax} segments`);
  if (segments.includes('')) throw refuseField(field, 'must not have an empty segment');
  return `$${segments.map((segment) => `.${quote(segment, field)}`).join('')}`;
}

function literalOf(value: unknown, field: string): string {
  if (value === null || typeof value === 'boolean') return String(value);
  if (typeof value === 'string') return quote(value, field);
  if (typeof value !== 'number') throw refuseField(field, 'must be a string, a number, true, false or null');
  // Beyond these JSON.parse has already made another number of what was sent.
  if (Math.abs(value) <= Number.MAX_SAFE_INTEGER) return Object.is(value, -0) ? '0' : String(value);
  throw refuseField(field, `must lie within ±${Number.MAX_SAFE_INTEGER}`);
}

/** jsonpath reads strings as JSON does; jsonb can hold neither NUL nor half a character. */
function quote(text: string, field: string): string {
  if (text.length > FILTER_LIMITS.textMax)
    throw refuseField(field, `must not hold a text longer than ${FILTER_LIMITS.textMax} characters`);
  if (/\0|\p{Cs}/u.test(text)) throw refuseField(field, 'must not hold NUL or half of a surrogate pair');
  return JSON.stringify(text);
}

const both = (parts: readonly string[]): string => parts.map((part) => `(${part})`).join(' && ');
const either = (parts: readonly string[]): string => parts.map((part) => `(${part})`).join(' || ');
