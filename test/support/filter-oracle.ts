/**
 * What a filter means, by the words of docs/reference/filters.md and without a look at the SQL. Numbers are kept as
 * their text, so that nothing is rounded.
 */
export type Model =
  | { readonly kind: 'null' }
  | { readonly kind: 'boolean'; readonly value: boolean }
  | { readonly kind: 'string'; readonly value: string }
  | { readonly kind: 'number'; readonly text: string }
  | { readonly kind: 'array'; readonly items: readonly Model[] }
  /** Of a name that is given twice the last counts. */
  | { readonly kind: 'object'; readonly entries: readonly (readonly [string, Model])[] };

export function render(model: Model): string {
  switch (model.kind) {
    case 'null':
      return 'null';
    case 'boolean':
      return String(model.value);
    case 'string':
      return JSON.stringify(model.value);
    case 'number':
      return model.text;
    case 'array':
      return `[${model.items.map(render).join(', ')}]`;
    default:
      return `{${model.entries.map(([name, value]) => `${JSON.stringify(name)}: ${render(value)}`).join(', ')}}`;
  }
}

export function filterHolds(filter: object, payload: Model): boolean {
  return Object.entries(filter).every(([name, asked]: [string, unknown]) => {
    if (name === '$and') return (asked as object[]).every((part) => filterHolds(part, payload));
    if (name === '$or') return (asked as object[]).some((part) => filterHolds(part, payload));
    if (name === '$not') return !filterHolds(asked as object, payload);
    const found = reach([payload], name.split('.'));
    if (typeof asked !== 'object' || asked === null) return anyOf(found, (value) => equals(value, asked));
    return Object.entries(asked).every(([operator, operand]: [string, unknown]) =>
      operatorHolds(operator, operand, found),
    );
  });
}

function operatorHolds(operator: string, operand: unknown, found: readonly Model[]): boolean {
  switch (operator) {
    case '$exists':
      return found.length > 0 === operand;
    case '$eq':
      return anyOf(found, (value) => equals(value, operand));
    case '$ne':
      return !anyOf(found, (value) => equals(value, operand));
    case '$in':
      return anyOf(found, (value) => (operand as unknown[]).some((one) => equals(value, one)));
    case '$nin':
      return !anyOf(found, (value) => (operand as unknown[]).some((one) => equals(value, one)));
    case '$startsWith':
      return anyOf(found, (value) => value.kind === 'string' && value.value.startsWith(operand as string));
    case '$gt':
      return anyOf(found, (value) => order(value, operand) === 1);
    case '$lt':
      return anyOf(found, (value) => order(value, operand) === -1);
    case '$gte':
      return anyOf(found, (value) => [0, 1].includes(order(value, operand) ?? -1));
    case '$lte':
      return anyOf(found, (value) => [0, -1].includes(order(value, operand) ?? 1));
    default:
      throw new Error(`no such operator: ${operator}`);
  }
}

/** A name leads into an object, or into each object of an array. */
function reach(from: readonly Model[], [name, ...rest]: readonly string[]): readonly Model[] {
  if (name === undefined) return from;
  const found = from
    .flatMap((value) => (value.kind === 'array' ? value.items : [value]))
    .flatMap((value) => {
      const entry = value.kind === 'object' ? value.entries.findLast(([known]) => known === name) : undefined;
      return entry === undefined ? [] : [entry[1]];
    });
  return reach(found, rest);
}

/** An array stands for any of its items, and for any item of an array in it. */
function anyOf(found: readonly Model[], holds: (value: Model) => boolean): boolean {
  const unwrap = (value: Model): readonly Model[] => (value.kind === 'array' ? value.items : [value]);
  return found.flatMap(unwrap).flatMap(unwrap).some(holds);
}

function equals(value: Model, operand: unknown): boolean {
  if (value.kind === 'null') return operand === null;
  if (value.kind === 'boolean') return operand === value.value;
  return order(value, operand) === 0;
}

function order(value: Model, operand: unknown): -1 | 0 | 1 | null {
  if (value.kind === 'string' && typeof operand === 'string')
    return Buffer.compare(Buffer.from(value.value), Buffer.from(operand));
  if (value.kind === 'number' && typeof operand === 'number')
    return compareDecimals(value.text, String(operand));
  return null;
}

function compareDecimals(one: string, other: string): -1 | 0 | 1 {
  const [a, b] = [parseDecimal(one), parseDecimal(other)];
  const scale = Math.min(a.exponent, b.exponent);
  const left = a.digits * 10n ** BigInt(a.exponent - scale);
  const right = b.digits * 10n ** BigInt(b.exponent - scale);
  return left === right ? 0 : left < right ? -1 : 1;
}

function parseDecimal(text: string): { readonly digits: bigint; readonly exponent: number } {
  const [, sign, whole, fraction = '', exponent = '0'] = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(
    text,
  )!;
  const digits = BigInt(`${whole}${fraction}`);
  return { digits: sign === '-' ? -digits : digits, exponent: Number(exponent) - fraction.length };
}
