import { readFileSync } from 'node:fs';

/** A JSON Schema as it stands in the document. */
export interface DocumentSchema {
  readonly [keyword: string]: unknown;
  readonly $ref?: string;
}

interface Content {
  readonly schema: DocumentSchema;
  readonly example?: unknown;
}

export interface DocumentParameter {
  readonly name: string;
  readonly in: 'path' | 'query' | 'header';
  readonly required: boolean;
  readonly schema: DocumentSchema;
  readonly example?: string | number | boolean;
}

export interface DocumentResponse {
  readonly headers: Readonly<Record<string, { readonly $ref: string }>>;
  readonly content?: Readonly<Record<string, Content>>;
  readonly 'x-codes'?: readonly string[];
}

/** One operation of docs/reference/openapi.json, its shared answers put in. */
export interface DocumentOperation {
  readonly id: string;
  readonly method: string;
  readonly path: string;
  /** Null for a route that takes no tenant's key. */
  readonly scope: string | null;
  /** Whether it takes the operator's key. */
  readonly isOperators: boolean;
  readonly parameters: readonly DocumentParameter[];
  readonly body: Content | null;
  readonly responses: Readonly<Record<string, DocumentResponse>>;
  /** Where an answer's schema stands, as a JSON pointer. */
  readonly pointerTo: (status: string, type: string) => string;
}

interface RawOperation {
  readonly operationId: string;
  readonly 'x-required-scope'?: string;
  readonly security: readonly object[];
  readonly parameters: readonly DocumentParameter[];
  readonly requestBody?: { readonly content: Readonly<Record<string, Content>> };
  readonly responses: Readonly<Record<string, DocumentResponse | { readonly $ref: string }>>;
}

interface RawDocument {
  readonly paths: Readonly<Record<string, Readonly<Record<string, RawOperation>>>>;
  readonly components: {
    readonly schemas: Readonly<Record<string, DocumentSchema>>;
    readonly responses: Readonly<Record<string, DocumentResponse>>;
    readonly headers: Readonly<
      Record<string, { readonly required: boolean; readonly schema: DocumentSchema }>
    >;
  };
}

/** The document as it is checked in, and as the api serves it. */
export const DOCUMENT_TEXT = readFileSync(
  new URL('../../docs/reference/openapi.json', import.meta.url),
  'utf8',
);

/** The same, parsed. */
export const DOCUMENT = JSON.parse(DOCUMENT_TEXT) as RawDocument;

/** Every operation of the document. */
export const OPERATIONS: readonly DocumentOperation[] = Object.entries(DOCUMENT.paths).flatMap(
  ([path, item]) => Object.entries(item).map(([method, raw]) => toOperation(method, path, raw)),
);

/** The operation with this id; throws when there is none. */
export function operationOf(id: string): DocumentOperation {
  const found = OPERATIONS.find((operation) => operation.id === id);
  if (found === undefined) throw new Error(`the document has no operation ${id}`);
  return found;
}

/** The operation that a request line is about, as the server reads it; null when it is about none. */
export function operationAt(method: string, target: string): DocumentOperation | null {
  const path = /^[^?#]*/.exec(target)![0];
  const asked = method === 'HEAD' ? 'get' : method.toLowerCase();
  return OPERATIONS.find((each) => each.method === asked && patternOf(each.path).test(path)) ?? null;
}

/** The schema behind a reference, or the schema itself. */
export function resolveSchema(schema: DocumentSchema): DocumentSchema {
  return schema.$ref === undefined ? schema : DOCUMENT.components.schemas[nameOf(schema.$ref)]!;
}

function toOperation(method: string, path: string, raw: RawOperation): DocumentOperation {
  const at = ['paths', path, method, 'responses'];
  return {
    id: raw.operationId,
    method,
    path,
    scope: raw['x-required-scope'] ?? null,
    isOperators: raw.security.some((scheme) => 'operatorKey' in scheme),
    parameters: raw.parameters,
    body: raw.requestBody?.content['application/json'] ?? null,
    responses: Object.fromEntries(
      Object.entries(raw.responses).map(([status, response]) => [
        status,
        '$ref' in response ? DOCUMENT.components.responses[nameOf(response.$ref)]! : response,
      ]),
    ),
    pointerTo: (status, type) => {
      const response = raw.responses[status]!;
      const place = '$ref' in response ? ['components', 'responses', nameOf(response.$ref)] : [...at, status];
      return [...place, 'content', type, 'schema'].map(escapePointer).join('/');
    },
  };
}

/** Express takes any case, and a slash at the end. */
function patternOf(path: string): RegExp {
  return new RegExp(`^${path.replaceAll('.', '\\.').replaceAll(/\{\w+\}/g, '[^/]+')}/?$`, 'i');
}

function nameOf($ref: string): string {
  return $ref.slice($ref.lastIndexOf('/') + 1);
}

/** One part of a JSON pointer, as it stands in a URI fragment. */
export function escapePointer(part: string): string {
  return encodeURIComponent(part.replaceAll('~', '~0').replaceAll('/', '~1'));
}
