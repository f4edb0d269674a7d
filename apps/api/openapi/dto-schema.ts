import { getMetadataStorage } from 'class-validator';
import ts from 'typescript';
import { findDeclaration, type Sources } from './program.js';
import { bound, type Schema } from './schema.js';
import type { DtoClass } from './routes.js';
import { objectSchema, type SchemaContext } from './type-schema.js';

/** What the decorators of class-validator say in the words of JSON Schema; those of types say what TypeScript says too. */
const KEYWORDS: Readonly<Record<string, (constraint: unknown) => Schema>> = {
  maxLength: (max) => ({ maxLength: max }),
  minLength: (min) => ({ minLength: min }),
  matches: (pattern) => ({ pattern: (pattern as RegExp).source }),
  arrayMaxSize: (max) => ({ maxItems: max }),
  arrayMinSize: (min) => ({ minItems: min }),
  min: (min) => ({ minimum: min }),
  max: (max) => ({ maximum: max }),
  isInt: () => ({ type: 'integer' }),
  isString: () => ({}),
  isArray: () => ({}),
  isIn: () => ({}),
  isBoolean: () => ({}),
  isNumber: () => ({}),
  isObject: () => ({}),
};

/** Decorators that say whether a field is looked at, which the type says too. */
const SILENT = new Set(['conditionalValidation', 'whitelistValidation']);

/** The schema of a DTO: its TypeScript type, within the bounds of its decorators. */
export function dtoSchema(sources: Sources, context: SchemaContext, dto: DtoClass): Schema {
  const declaration = findDeclaration(sources, dto.name, ts.isClassDeclaration);
  const type = sources.checker.getTypeAtLocation(declaration);
  const schema = objectSchema(context, type, { owner: dtoName(dto), isRequest: true });
  const properties: Record<string, Schema> = { ...schema.properties };
  for (const {
    propertyName,
    type: kind,
    name,
    constraints,
    each,
  } of getMetadataStorage().getTargetValidationMetadatas(dto, '', false, false)) {
    if (SILENT.has(kind)) continue;
    const keyword = KEYWORDS[name ?? kind];
    if (keyword === undefined) {
      context.faults.push(
        `${dto.name}.${propertyName}: teach apps/api/openapi/dto-schema.ts the decorator ${name ?? kind}`,
      );
      continue;
    }
    const word = keyword((constraints as readonly unknown[] | undefined)?.[0]);
    properties[propertyName] = bound(properties[propertyName] ?? {}, each ? { items: word } : word);
  }
  return { ...schema, properties };
}

/** The name of the schema that a DTO becomes. */
export function dtoName(dto: DtoClass): string {
  return dto.name.replace(/Dto$/, '');
}
