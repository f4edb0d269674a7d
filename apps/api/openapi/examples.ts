import { hasType, type Schema } from './schema.js';

/** One id for all kinds, so that what an example names fits together. */
const EXAMPLE_HEX = '019b0f5e7c1a7d3e8f4b2a6c9d0e1f23';

const PREFIX = /^\^([a-z]+_)\[0-9a-f\]\{32\}\$$/;

/** A value that fits a schema, made of the examples of its fields; of alternatives the first, in a list one of each. */
export function exampleOf(schema: Schema, components: ReadonlyMap<string, Schema>): unknown {
  if (schema.examples !== undefined) return schema.examples[0];
  if (schema.$ref !== undefined) return exampleOf(resolve(schema.$ref, components), components);
  if (schema.anyOf !== undefined) return exampleOf(schema.anyOf[0]!, components);
  if (schema.enum !== undefined) return schema.enum[0];
  if (schema.items !== undefined) {
    const alternatives = schema.items.anyOf ?? [schema.items];
    return alternatives.map((item) => exampleOf(item, components));
  }
  if (schema.properties !== undefined) {
    const fields = Object.entries(schema.properties);
    return Object.fromEntries(fields.map(([name, field]) => [name, exampleOf(field, components)]));
  }
  if (hasType(schema, 'object')) {
    const { additionalProperties } = schema;
    const known = typeof additionalProperties === 'object' && Object.keys(additionalProperties).length > 0;
    return known ? { database: exampleOf(additionalProperties, components) } : {};
  }
  if (hasType(schema, 'boolean')) return true;
  const prefix = typeof schema['pattern'] === 'string' ? PREFIX.exec(schema['pattern'])?.[1] : undefined;
  if (prefix !== undefined) return prefix + EXAMPLE_HEX;
  throw new Error(`no example for ${JSON.stringify(schema)}: give its word one in apps/api/openapi/words`);
}

/** The schema that a reference names. */
export function resolve($ref: string, components: ReadonlyMap<string, Schema>): Schema {
  const schema = components.get($ref.slice($ref.lastIndexOf('/') + 1));
  if (schema === undefined) throw new Error(`${$ref} names no schema`);
  return schema;
}

/** Bodies to begin with, where all the fields at once would say little. */
export const REQUEST_EXAMPLES: Readonly<Record<string, unknown>> = {
  publishEvent: {
    event_type: 'order.created',
    payload: { id: 1042, total: 19.9 },
    metadata: { source: 'checkout' },
  },
  publishBatch: {
    events: [
      { event_type: 'order.created', payload: { id: 1042 }, idempotency_key: 'order-1042-created' },
      { event_type: 'order.paid', payload: { id: 1042 } },
    ],
    mode: 'per_item',
  },
  createEndpoint: {
    url: 'https://example.com/hooks',
    event_types: ['order.*', 'invoice.paid'],
    description: 'ERP',
  },
  updateEndpoint: {
    status: 'enabled',
    retry: { schedule_seconds: [5, 300, 1800] },
    timeout: { total_ms: 10_000 },
  },
};
