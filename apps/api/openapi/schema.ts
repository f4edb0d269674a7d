/** A JSON Schema (2020-12) as OpenAPI 3.1 takes it. */
export interface Schema {
  readonly [keyword: string]: unknown;
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly Schema[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly additionalProperties?: Schema | boolean;
  readonly description?: string;
  readonly examples?: readonly unknown[];
}

/** What a field name means wherever it stands, and the bounds that its TypeScript type cannot say. */
export interface Word extends Schema {
  /** One sentence at least; there is no field without one. */
  readonly description: string;
}

/** Whether a schema has this type, alone or among others. */
export function hasType(schema: Schema, type: string): boolean {
  return typeof schema.type === 'string' ? schema.type === type : (schema.type?.includes(type) ?? false);
}

const KEYWORDS: Readonly<Record<string, readonly string[]>> = {
  string: ['pattern', 'format', 'minLength', 'maxLength', 'enum'],
  number: ['minimum', 'maximum', 'exclusiveMinimum', 'default'],
  array: ['minItems', 'maxItems', 'uniqueItems'],
  object: ['maxProperties', 'propertyNames'],
};

/** Puts the bounds of a word onto the parts of a schema that they are about. */
export function bound(schema: Schema, word: Schema): Schema {
  if (schema.anyOf !== undefined)
    return { ...schema, anyOf: schema.anyOf.map((branch) => bound(branch, word)) };
  if (schema.$ref !== undefined || (schema.enum !== undefined && word.enum === undefined)) return schema;
  const bounded: Record<string, unknown> = { ...schema };
  for (const [type, keywords] of Object.entries(KEYWORDS)) {
    if (!hasType(schema, type)) continue;
    for (const keyword of keywords) if (word[keyword] !== undefined) bounded[keyword] = word[keyword];
  }
  if (hasType(schema, 'number') && word.type === 'integer') {
    bounded['type'] = Array.isArray(schema.type)
      ? schema.type.map((type: string) => (type === 'number' ? 'integer' : type))
      : 'integer';
  }
  if (schema.items !== undefined && word.items !== undefined)
    bounded['items'] = bound(schema.items, word.items);
  if (typeof schema.additionalProperties === 'object' && typeof word.additionalProperties === 'object') {
    bounded['additionalProperties'] = bound(schema.additionalProperties, word.additionalProperties);
  }
  return bounded;
}
