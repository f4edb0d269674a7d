import { ID_PREFIXES, type IdKind } from '#runtime';
import ts from 'typescript';
import { bound, type Schema, type Word } from './schema.js';

/** What reading types needs to know, and what it finds on its way. */
export interface SchemaContext {
  readonly checker: ts.TypeChecker;
  /** The names of the types that clients should see under a name. */
  readonly names: ReadonlyMap<ts.Symbol, string>;
  /** Of requests: the types of fields whose DTO says less, by `field` or `Owner.field`. */
  readonly requestFields: ReadonlyMap<string, ts.Type>;
  readonly words: Readonly<Record<string, Word>>;
  readonly usedWords: Set<string>;
  readonly components: Map<string, Schema>;
  readonly faults: string[];
}

/** Where a type stands: the schema around it, and whether that is sent by clients. */
export interface Place {
  readonly owner: string;
  readonly isRequest: boolean;
}

/** The pattern of an id. */
export function idPattern(kind: IdKind): string {
  return `^${ID_PREFIXES[kind]}_[0-9a-f]{32}$`;
}

/** The schema of a type; named object types become components. */
export function schemaOf(context: SchemaContext, type: ts.Type, place: Place): Schema {
  if (type.isUnion()) return unionSchema(context, type, place);
  const { flags } = type;
  if (flags & ts.TypeFlags.Unknown) return {};
  if (flags & ts.TypeFlags.Null) return { type: 'null' };
  if (type.isStringLiteral() || type.isNumberLiteral())
    return { type: typeof type.value, enum: [type.value] };
  if (flags & ts.TypeFlags.TemplateLiteral) return idSchema(context, type as ts.TemplateLiteralType);
  if (flags & ts.TypeFlags.String) return { type: 'string' };
  if (flags & ts.TypeFlags.Number) return { type: 'number' };
  if (flags & ts.TypeFlags.BooleanLike) return { type: 'boolean' };
  if (context.checker.isArrayType(type)) {
    const [item] = context.checker.getTypeArguments(type as ts.TypeReference);
    return { type: 'array', items: schemaOf(context, item!, place) };
  }
  if (flags & (ts.TypeFlags.Object | ts.TypeFlags.Intersection)) return namedSchema(context, type, place);
  context.faults.push(`${place.owner}: no JSON is of the type ${context.checker.typeToString(type)}`);
  return {};
}

function idSchema(context: SchemaContext, type: ts.TemplateLiteralType): Schema {
  const kind = (Object.keys(ID_PREFIXES) as IdKind[]).find(
    (name) => `${ID_PREFIXES[name]}_` === type.texts[0],
  );
  if (kind !== undefined) return { type: 'string', pattern: idPattern(kind) };
  context.faults.push(`no id looks like ${context.checker.typeToString(type)}`);
  return {};
}

function unionSchema(context: SchemaContext, union: ts.UnionType, place: Place): Schema {
  const types = union.types.filter(({ flags }) => !(flags & ts.TypeFlags.Undefined));
  const isNullable = types.some(({ flags }) => flags & ts.TypeFlags.Null);
  // Sorted, here and below: the compiler's own order changes with any line of the program.
  const literals = types
    .filter((type) => type.isStringLiteral())
    .map(({ value }) => value)
    .toSorted();
  const isBoolean = types.some(({ flags }) => flags & ts.TypeFlags.BooleanLiteral);
  const others = types.filter(
    (type) => !type.isStringLiteral() && !(type.flags & (ts.TypeFlags.Null | ts.TypeFlags.BooleanLiteral)),
  );
  const branches: Schema[] = [
    ...(isBoolean ? [{ type: 'boolean' }] : []),
    ...(literals.length > 0 ? [{ type: 'string', enum: literals }] : []),
    ...others.map((type) => schemaOf(context, type, place)).toSorted(byText),
  ];
  const [only] = branches;
  if (only !== undefined && branches.length === 1) return isNullable ? nullable(only) : only;
  return { anyOf: [...branches, ...(isNullable ? [{ type: 'null' }] : [])] };
}

function byText(one: Schema, other: Schema): number {
  return JSON.stringify(one) < JSON.stringify(other) ? -1 : 1;
}

function nullable(schema: Schema): Schema {
  if (typeof schema.type !== 'string') return { anyOf: [schema, { type: 'null' }] };
  return {
    ...schema,
    type: [schema.type, 'null'],
    ...(schema.enum === undefined ? {} : { enum: [...schema.enum, null] }),
  };
}

function namedSchema(context: SchemaContext, type: ts.Type, place: Place): Schema {
  const name = nameOf(context, type);
  if (name === undefined) return objectSchema(context, type, place);
  const $ref = `#/components/schemas/${name}`;
  if (context.components.has(name)) return { $ref };
  // Before its fields are read, so that a type may hold itself.
  context.components.set(name, {});
  context.components.set(name, objectSchema(context, type, { ...place, owner: name }));
  return { $ref };
}

function nameOf({ names }: SchemaContext, type: ts.Type): string | undefined {
  // TypeScript types these as always there; anonymous types have none.
  const symbols: readonly (ts.Symbol | undefined)[] = [type.aliasSymbol, type.symbol];
  return symbols.flatMap((symbol) => (symbol === undefined ? [] : (names.get(symbol) ?? [])))[0];
}

/** The schema of an object type by its fields, each with what its word says. */
export function objectSchema(context: SchemaContext, type: ts.Type, place: Place): Schema {
  const { checker } = context;
  const indexed = checker.getIndexInfosOfType(type)[0];
  if (indexed !== undefined) {
    return { type: 'object', additionalProperties: schemaOf(context, indexed.type, place) };
  }
  const properties: Record<string, Schema> = {};
  const required: string[] = [];
  for (const symbol of propertiesInOrder(checker, type)) {
    const propertyType = checker.getTypeOfSymbol(symbol);
    // What one branch of a union has and this one has not.
    if (propertyType.flags & ts.TypeFlags.Undefined) continue;
    properties[symbol.name] = fieldSchema(context, symbol.name, propertyType, place);
    if (!(symbol.flags & ts.SymbolFlags.Optional) && !mayBeUndefined(propertyType))
      required.push(symbol.name);
  }
  return {
    type: 'object',
    properties,
    ...(required.length > 0 ? { required } : {}),
    // An answer may get more fields one day; what a client sends may not have any that nobody reads.
    ...(place.isRequest ? { additionalProperties: false } : {}),
  };
}

/** JSON leaves such a field out. */
function mayBeUndefined(type: ts.Type): boolean {
  return type.isUnion() && type.types.some(({ flags }) => flags & ts.TypeFlags.Undefined);
}

/** The fields of a type in the order in which an answer has them: the compiler puts what is spread in somewhere else. */
function propertiesInOrder(checker: ts.TypeChecker, type: ts.Type): ts.Symbol[] {
  const order = namesInOrder(checker, type);
  const place = ({ name }: ts.Symbol) => (order.includes(name) ? order.indexOf(name) : order.length);
  return checker.getPropertiesOfType(type).toSorted((one, other) => place(one) - place(other));
}

function namesInOrder(checker: ts.TypeChecker, type: ts.Type): string[] {
  // TypeScript types it as always there; primitives have none.
  const symbol: ts.Symbol | undefined = type.symbol;
  const literal = symbol?.valueDeclaration;
  if (literal === undefined || !ts.isObjectLiteralExpression(literal)) {
    return checker.getPropertiesOfType(type).map(({ name }) => name);
  }
  return literal.properties.flatMap((property) =>
    ts.isSpreadAssignment(property)
      ? namesInOrder(checker, checker.getTypeAtLocation(property.expression))
      : [property.name.getText()],
  );
}

/** The schema of a field: its type's, with the bounds, description and example of its word. */
export function fieldSchema(context: SchemaContext, name: string, type: ts.Type, place: Place): Schema {
  const word = wordOf(context, name, place.owner);
  const known = (place.isRequest ? requestTypeOf(context, name, place.owner) : undefined) ?? type;
  const { description, examples } = word;
  return {
    ...bound(schemaOf(context, known, { ...place, owner: `${place.owner}.${name}` }), word),
    description,
    ...(examples === undefined ? {} : { examples }),
  };
}

function requestTypeOf({ requestFields }: SchemaContext, name: string, owner: string): ts.Type | undefined {
  return requestFields.get(`${owner}.${name}`) ?? requestFields.get(name);
}

/** The word of a field, with what is so of it in one schema alone; a field without one is a fault. */
export function wordOf({ words, usedWords, faults }: SchemaContext, name: string, owner: string): Word {
  const own = `${owner}.${name}`;
  const found = [name, own].filter((key) => words[key] !== undefined);
  if (found.length === 0) {
    faults.push(`the field ${own} has no word: say what it means in apps/api/openapi/words/`);
  }
  for (const key of found) usedWords.add(key);
  return Object.assign({ description: '' }, ...found.map((key) => words[key])) as Word;
}
