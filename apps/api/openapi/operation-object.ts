import type { ErrorCode } from '#runtime';
import ts from 'typescript';
import { dtoName, dtoSchema } from './dto-schema.js';
import { codesOf } from './error-codes.js';
import { exampleOf, REQUEST_EXAMPLES } from './examples.js';
import { handlerOf, headersSet, idKindOf, namesConsumer } from './handler-facts.js';
import { REQUEST_HEADERS } from './headers.js';
import { exampleFor, type Kit } from './kit.js';
import { findDeclaration, findMethod } from './program.js';
import { problemResponses, successResponses } from './responses.js';
import type { Route } from './routes.js';
import type { Schema } from './schema.js';
import { idPattern, schemaOf, wordOf } from './type-schema.js';

/** What may befall any request at all, before a route is known or because of us. */
const ALWAYS: readonly ErrorCode[] = [
  'invalid_request',
  'request_timeout',
  'headers_too_large',
  'internal_error',
];

/** The scanner of JSON can count the elements of any array; only a batch tells it to. */
const ONLY_IN: Partial<Record<ErrorCode, string>> = { too_many_events: 'publishBatch' };

/** The description of one route. */
export function operationObject(kit: Kit, route: Route): Record<string, unknown> {
  const { text } = route;
  const handler = handlerOf(kit.sources, route);
  const headers = [...headersSet(handler), ...route.responseHeaders];
  const requestBody = requestBodyOf(kit, route);
  return {
    operationId: text.id,
    summary: text.summary,
    ...(text.description === undefined ? {} : { description: text.description }),
    tags: [tagOf(route)],
    ...securityOf(route),
    parameters: parametersOf(kit, route, handler),
    ...(requestBody === null ? {} : { requestBody }),
    responses: {
      ...problemResponses(kit, codesOfRoute(kit, route, handler)),
      ...successResponses(kit, route, handler, headers),
    },
  };
}

/** The group of an operation: the collection behind /v1, or what is for machines. */
export function tagOf({ path }: Route): string {
  return /^\/v1\/([a-z-]+)/.exec(path)?.[1]?.replaceAll('-', ' ') ?? 'machines';
}

function securityOf({ isPublic, isOperators, scope, requestHeaders }: Route): Record<string, unknown> {
  if (isOperators) return { security: [{ operatorKey: [] }] };
  if (!isPublic) return { security: [{ apiKey: [] }], 'x-required-scope': scope };
  // Asked for only where the operator set a token.
  return { security: requestHeaders.includes('authorization') ? [{ metricsToken: [] }, {}] : [] };
}

function consumerInPath({ context }: Kit, name: string): object {
  const { description, examples, ...schema } = wordOf(context, 'consumer', name);
  return {
    name,
    in: 'path',
    required: true,
    description,
    schema: { type: 'string', ...schema },
    example: examples?.[0],
  };
}

function parametersOf(kit: Kit, route: Route, handler: ts.FunctionLikeDeclaration): object[] {
  const inPath = route.pathNames.map((name) => {
    if (namesConsumer(handler, name)) return consumerInPath(kit, name);
    const kind = idKindOf(handler, name);
    if (kind === undefined) {
      kit.context.faults.push(
        `${route.text.id}: whose id is {${name}}? Its handler calls parseId for no kind`,
      );
    }
    const schema: Schema = { type: 'string', ...(kind === undefined ? {} : { pattern: idPattern(kind) }) };
    return {
      name,
      in: 'path',
      required: true,
      description: `The ${kind?.replaceAll('_', ' ') ?? 'thing'}'s id.`,
      schema,
      ...(kind === undefined ? {} : { example: exampleOf(schema, new Map()) }),
    };
  });
  const query = route.query === null ? null : dtoSchema(kit.sources, kit.context, route.query);
  const inQuery = Object.entries(query?.properties ?? {}).map(
    ([name, { description, examples, ...schema }]) => ({
      name,
      in: 'query',
      required: query?.required?.includes(name) ?? false,
      description,
      schema,
      ...(examples === undefined ? {} : { example: examples[0] }),
    }),
  );
  const inHeader = route.requestHeaders.flatMap((name) => {
    const header = REQUEST_HEADERS[name];
    // The security schemes speak of it.
    if (name === 'authorization') return [];
    if (header === undefined) throw new Error(`say what ${name} is in apps/api/openapi/headers.ts`);
    return [{ ...header, in: 'header', required: false }];
  });
  return [...inPath, ...inQuery, ...inHeader];
}

function requestBodyOf(kit: Kit, route: Route): object | null {
  const schema = bodySchemaOf(kit, route);
  if (schema === null) return null;
  return {
    required: !route.mayLeaveOutBody,
    content: {
      'application/json': {
        schema,
        example: REQUEST_EXAMPLES[route.text.id] ?? exampleFor(kit, schema, route.text.id),
      },
    },
  };
}

function bodySchemaOf(kit: Kit, { text, body, takesJson }: Route): Schema | null {
  const described = kit.bodies.get(text.id);
  if (described !== undefined) {
    return schemaOf(kit.context, described, { owner: text.id, isRequest: true });
  }
  if (!takesJson) return null;
  if (body === null) throw new Error(`${text.id} takes JSON that neither a DTO nor shapes.ts describes`);
  const name = dtoName(body);
  kit.context.components.set(name, dtoSchema(kit.sources, kit.context, body));
  return { $ref: `#/components/schemas/${name}` };
}

function codesOfRoute(kit: Kit, route: Route, handler: ts.FunctionLikeDeclaration): ReadonlySet<ErrorCode> {
  const { sources } = kit;
  const named = unseenCalls(route).map((name) => findDeclaration(sources, name, ts.isFunctionDeclaration));
  const roots: ts.Node[] = [handler, ...named];
  if (route.body !== null || route.query !== null) roots.push(findMethod(sources, 'DtoPipe', 'transform'));
  const codes = new Set([...ALWAYS, ...codesOf(sources, roots)]);
  if (!route.isPublic) codes.add('database_unavailable');
  for (const code of codes) if ((ONLY_IN[code] ?? route.text.id) !== route.text.id) codes.delete(code);
  for (const code of route.text.never ?? []) {
    if (!codes.delete(code))
      kit.context.faults.push(`${route.text.id} never throws ${code}: no need to say so`);
  }
  return codes;
}

/** The functions that a route runs and that its handler does not name: of the guard, the body, and the context. */
function unseenCalls({ isPublic, isOperators, createsOnce, body }: Route): string[] {
  const ofKey = isOperators ? ['assertOperator'] : ['createAuthenticate', 'requireScope'];
  return [
    ...(isPublic ? [] : [...ofKey, 'refuseQuery']),
    ...(body === null ? [] : ['readObject']),
    ...(createsOnce ? ['readCreation', 'openCreateOnce'] : []),
  ];
}
