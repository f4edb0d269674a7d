import { block, code, element, escape, markUp, methodBadge, table } from './html.js';
import { fieldTable, typeText } from './render-schema.js';
import type { Schema } from './schema.js';

interface ShownParameter {
  readonly name: string;
  readonly in: string;
  readonly required: boolean;
  readonly description: string;
  readonly schema: Schema;
  readonly example?: unknown;
}

type Content = Readonly<Record<string, { readonly schema: Schema; readonly example?: unknown }>>;

/** An answer of an operation as it stands in the document. */
export interface ShownResponse {
  readonly description: string;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly content?: Content;
  readonly 'x-codes'?: readonly string[];
}

/** What operations name. */
export interface ShownComponents {
  readonly responses: Readonly<Record<string, ShownResponse>>;
  readonly schemas: Readonly<Record<string, Schema>>;
}

/** An operation as it stands in the document. */
export interface ShownOperation {
  readonly operationId: string;
  readonly method: string;
  readonly path: string;
  readonly summary: string;
  readonly description?: string;
  readonly tags: readonly string[];
  readonly security: readonly object[];
  readonly 'x-required-scope'?: string;
  readonly parameters: readonly ShownParameter[];
  readonly requestBody?: { readonly content: Content };
  readonly responses: Readonly<Record<string, ShownResponse | { readonly $ref: string }>>;
}

/** An operation with an anchor: what it takes, a command that calls it, and what it answers. */
export function renderOperation(
  operation: ShownOperation,
  { responses: shared, schemas }: ShownComponents,
): string {
  const { operationId, method, path, summary, description, parameters, requestBody } = operation;
  const body = Object.values(requestBody?.content ?? {})[0];
  const responses = Object.entries(operation.responses).map(([status, response]): [string, ShownResponse] => [
    status,
    '$ref' in response ? shared[nameOf(response.$ref)]! : response,
  ]);
  return [
    `<section class="operation" id="${operationId}">`,
    `<h3><a href="#${operationId}">${methodBadge(method)} ${code(path)}</a></h3>`,
    `<p><strong>${markUp(summary)}.</strong> ${markUp(description ?? '')}</p>`,
    `<p>${accessText(operation)} ${code(operationId)}</p>`,
    parameters.length === 0 ? '' : element('h4', 'Parameters'),
    table(
      ['Name', 'Type', 'Meaning'],
      parameters.map((parameter) => [
        `${code(parameter.name)} <i>${parameter.in}</i>`,
        typeText(parameter.schema),
        markUp(parameter.description),
      ]),
    ),
    body === undefined ? '' : bodyText(body.schema, schemas),
    element('h4', 'Call'),
    block(curlOf(operation, body?.example), `How to call ${operationId}`),
    element('h4', 'Answers'),
    ...responses.map(([status, response]) => renderResponse(operationId, status, response)),
    problemTable(responses),
    '</section>',
  ].join('\n');
}

function bodyText(schema: Schema, schemas: ShownComponents['schemas']): string {
  const named = schema.$ref === undefined ? undefined : schemas[nameOf(schema.$ref)];
  return element('h4', `Body: ${typeText(schema)}`) + (named === undefined ? '' : fieldTable(named));
}

function nameOf($ref: string): string {
  return $ref.slice($ref.lastIndexOf('/') + 1);
}

function accessText(operation: ShownOperation): string {
  const scope = operation['x-required-scope'];
  if (scope !== undefined) return `Needs a key with the scope ${code(scope)}.`;
  return operation.security.length === 0 ? 'Needs no key.' : 'Needs the metrics token, where there is one.';
}

function curlOf({ method, path, parameters, security }: ShownOperation, body: unknown): string {
  const filled = parameters
    .filter((parameter) => parameter.in === 'path')
    .reduce((url, { name, example }) => url.replace(`{${name}}`, String(example)), path);
  const lines = [
    `curl ${method === 'get' ? '' : `-X ${method.toUpperCase()} `}"$WAYBILL_URL${filled}"`,
    ...(security.length === 0 ? [] : ['-H "authorization: Bearer $WAYBILL_KEY"']),
    ...(body === undefined
      ? []
      : ["-H 'content-type: application/json'", `-d '${JSON.stringify(body).replaceAll("'", "'\\''")}'`]),
  ];
  return lines.join(' \\\n  ');
}

function renderResponse(operationId: string, status: string, response: ShownResponse): string {
  if (response['x-codes'] !== undefined) return '';
  const [type, content] = Object.entries(response.content ?? {})[0] ?? [];
  const headers = Object.keys(response.headers).map(code).join(', ');
  const what = content === undefined ? '' : ` ${escape(type!)}: ${typeText(content.schema)}.`;
  const example =
    content === undefined
      ? ''
      : block(
          typeof content.example === 'string' ? content.example : JSON.stringify(content.example, null, 2),
          `Answer ${status} of ${operationId}`,
        );
  return `<p><strong>${status}</strong> ${markUp(response.description)}${what} Headers: ${headers}.</p>${example}`;
}

function problemTable(responses: readonly [string, ShownResponse][]): string {
  const rows = responses
    .filter(([, response]) => response['x-codes'] !== undefined)
    .map(([status, response]) => [status, markUp(response.description)]);
  return `<details><summary>Refusals, as <a href="#schema-Problem"><code>Problem</code></a></summary>${table(['Status', 'Codes'], rows)}</details>`;
}
