import { anchorOf, code, element, markUp, table } from './html.js';
import { hasType, type Schema } from './schema.js';

/** A schema of the document, with an anchor. */
export function renderSchema(name: string, schema: Schema): string {
  const anchor = schemaAnchor(name);
  return `<section id="${anchor}"><h3><a href="#${anchor}">${code(name)}</a></h3>${fieldTable(schema)}</section>`;
}

/** The fields of an object schema with those of the objects that stand in it; of any other its type. */
export function fieldTable(schema: Schema): string {
  if (schema.properties === undefined) return element('p', typeText(schema));
  return table(['Field', 'Type', 'Meaning'], fieldRows(schema, ''));
}

function fieldRows(schema: Schema, prefix: string): string[][] {
  return Object.entries(schema.properties ?? {}).flatMap(([name, field]) => {
    const path = prefix + name;
    const isOptional = !(schema.required?.includes(name) ?? false);
    const row = [
      code(path) + (isOptional ? ' <i>optional</i>' : ''),
      typeText(field),
      markUp(field.description ?? ''),
    ];
    return [row, ...innerObjects(field, path).flatMap(([inner, at]) => fieldRows(inner, `${at}.`))];
  });
}

function innerObjects(schema: Schema, path: string): [Schema, string][] {
  if (schema.properties !== undefined) return [[schema, path]];
  if (schema.anyOf !== undefined) return schema.anyOf.flatMap((branch) => innerObjects(branch, path));
  return schema.items === undefined ? [] : innerObjects(schema.items, `${path}[]`);
}

/** What a value may be, in words, with links to the schemas that it names. */
export function typeText(schema: Schema): string {
  if (schema.$ref !== undefined) {
    const name = schema.$ref.slice(schema.$ref.lastIndexOf('/') + 1);
    return `<a href="#${schemaAnchor(name)}">${code(name)}</a>`;
  }
  if (schema.anyOf !== undefined) return schema.anyOf.map(typeText).join(' or ');
  if (schema.enum !== undefined) return schema.enum.map((value) => code(JSON.stringify(value))).join(', ');
  if (hasType(schema, 'array')) {
    const nullable = hasType(schema, 'null') ? ' or null' : '';
    return `list of ${typeText(schema.items ?? {})}${nullable}${boundsText(schema)}`;
  }
  if (schema.type === undefined) return 'any JSON';
  return `${[schema.type].flat().join(' or ')}${boundsText(schema)}`;
}

function boundsText(schema: Schema): string {
  const range = (low: string, high: string, what: string): string | null => {
    const [min, max] = [schema[low], schema[high]] as (number | undefined)[];
    if (min === undefined && max === undefined) return null;
    if (max === undefined) return `at least ${min}${what}`;
    return min === undefined ? `at most ${max}${what}` : `${min} to ${max}${what}`;
  };
  const parts = [
    range('minimum', 'maximum', ''),
    range('minLength', 'maxLength', ' characters'),
    range('minItems', 'maxItems', ' entries'),
    range('minProperties', 'maxProperties', ' fields'),
    schema['default'] === undefined ? null : `${code(JSON.stringify(schema['default']))} by default`,
    typeof schema['format'] === 'string' ? schema['format'] : null,
    typeof schema['pattern'] === 'string' ? code(schema['pattern']) : null,
  ].filter((part) => part !== null);
  return parts.length === 0 ? '' : `, ${parts.join(', ')}`;
}

function schemaAnchor(name: string): string {
  return `schema-${anchorOf(name)}`;
}
