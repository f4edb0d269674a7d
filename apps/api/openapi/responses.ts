import { ERRORS, type ErrorCode } from '#runtime';
import ts from 'typescript';
import { answerTypeOf } from './handler-facts.js';
import { RESPONSE_HEADERS } from './headers.js';
import { exampleFor, type Kit } from './kit.js';
import type { Route } from './routes.js';
import type { Schema } from './schema.js';
import { schemaOf } from './type-schema.js';

type Response = Readonly<Record<string, unknown>>;

/** The media types of answers that are no JSON. */
const TEXT_TYPES: Readonly<Record<string, string>> = { readMetrics: 'text/plain', readDocs: 'text/html' };

const TEXT_EXAMPLES: Readonly<Record<string, string>> = {
  readMetrics: 'waybill_queue_due 3\n',
  readDocs: '<!doctype html>…',
};

const SUCCESS: Readonly<Record<number, string>> = {
  200: 'Done.',
  201: 'Stored, and committed.',
  202: 'Taken on.',
  204: 'Done; there is nothing to say.',
  304: 'Nothing has changed since the version of `If-None-Match`.',
  503: 'Not ready.',
};

/** The answers of an operation when all goes well, by status. */
export function successResponses(
  kit: Kit,
  route: Route,
  handler: ts.FunctionLikeDeclaration,
  headers: readonly string[],
): Record<string, Response> {
  const described = kit.answers.get(route.text.id);
  const types: [number, ts.Type][] =
    described === undefined
      ? [[route.status, answerTypeOf(kit.sources, handler)]]
      : kit.sources.checker
          .getPropertiesOfType(described)
          .map((symbol) => [Number(symbol.name), kit.sources.checker.getTypeOfSymbol(symbol)]);
  return Object.fromEntries(
    types.map(([status, type]) => {
      const description = SUCCESS[status];
      if (description === undefined)
        kit.context.faults.push(`${route.text.id}: responses.ts has no words for ${status}`);
      const content = contentOf(kit, route, status, type);
      return [
        String(status),
        {
          description: description ?? '',
          headers: headersOf(['x-request-id', ...headers]),
          ...(content === null ? {} : { content }),
        },
      ];
    }),
  );
}

function contentOf(kit: Kit, route: Route, status: number, type: ts.Type): object | null {
  const { id } = route.text;
  if (type.flags & (ts.TypeFlags.Void | ts.TypeFlags.Undefined)) return null;
  if (type.flags & ts.TypeFlags.String) {
    return {
      [TEXT_TYPES[id] ?? 'text/plain']: { schema: { type: 'string' }, example: TEXT_EXAMPLES[id] ?? '' },
    };
  }
  const { components } = kit.context;
  const name = `${id.charAt(0).toUpperCase()}${id.slice(1)}Answer${status === route.status ? '' : status}`;
  const schema = schemaOf(kit.context, type, { owner: name, isRequest: false });
  if (schema.$ref === undefined) components.set(name, schema);
  const shown: Schema = schema.$ref === undefined ? { $ref: `#/components/schemas/${name}` } : schema;
  return { 'application/json': { schema: shown, example: exampleFor(kit, shown, name) } };
}

/** The refusals of an operation: one answer for each status, with the codes that it can have. */
export function problemResponses(kit: Kit, codes: ReadonlySet<ErrorCode>): Record<string, Response> {
  for (const code of codes) kit.usedCodes.add(code);
  const order = Object.keys(ERRORS) as ErrorCode[];
  const byStatus = new Map<number, ErrorCode[]>();
  for (const code of order.filter((each) => codes.has(each))) {
    const { status } = ERRORS[code];
    byStatus.set(status, [...(byStatus.get(status) ?? []), code]);
  }
  return Object.fromEntries([...byStatus].map(([status, found]) => [String(status), problem(status, found)]));
}

function problem(status: number, codes: readonly ErrorCode[]): Response {
  const headers = [
    'x-request-id',
    ...(status === 401 ? ['www-authenticate'] : []),
    ...(status === 503 ? ['retry-after'] : []),
  ];
  return {
    description: codes.map((code) => `\`${code}\`: ${ERRORS[code].title}`).join(' '),
    headers: headersOf(headers),
    content: {
      'application/problem+json': {
        schema: { $ref: '#/components/schemas/Problem' },
        examples: Object.fromEntries(codes.map((code) => [code, { $ref: `#/components/examples/${code}` }])),
      },
    },
    'x-codes': codes,
  };
}

function headersOf(names: readonly string[]): object {
  return Object.fromEntries(
    names.map((name) => {
      const header = RESPONSE_HEADERS[name];
      if (header === undefined) throw new Error(`say what ${name} is in apps/api/openapi/headers.ts`);
      return [header.name, { $ref: `#/components/headers/${header.name}` }];
    }),
  );
}

/** What a problem with each of these codes looks like. */
export function problemExamples(codes: ReadonlySet<ErrorCode>): Record<string, object> {
  const order = (Object.keys(ERRORS) as ErrorCode[]).filter((code) => codes.has(code));
  return Object.fromEntries(order.map((code) => [code, problemExample(code)]));
}

function problemExample(code: ErrorCode): object {
  const { status, title } = ERRORS[code];
  const { example } = RESPONSE_HEADERS['x-request-id']!;
  const value = { type: `/errors/${code}`, title, status, detail: title, code, request_id: example };
  return { summary: title, value };
}
