import type { IncomingHttpHeaders } from 'node:http';

import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';

import {
  DOCUMENT,
  type DocumentOperation,
  type DocumentResponse,
  escapePointer,
  operationAt,
} from './openapi-document.js';

interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

/** A request that is about no operation is refused with one of these. */
const STRAY_CODES = [
  'route_not_found',
  'method_not_allowed',
  'invalid_request',
  'request_timeout',
  'headers_too_large',
  'body_too_large',
];

/** Headers that say something about what is answered: each must be described where it is sent. */
const SPEAKING_HEADERS = ['location', 'etag', 'retry-after', 'idempotency-replayed', 'www-authenticate'];

const DOCUMENT_ID = 'openapi';

// Formats are checked, and what no schema describes is refused: an answer must be described to its last field.
const ajv = new Ajv2020({ strict: false, allErrors: true });
addFormats.default(ajv);
ajv.addSchema(closed(DOCUMENT) as object, DOCUMENT_ID);

/** Where an answer is not what the document says of the request it answers; empty when it is. */
export function faultsOf(method: string, target: string, answer: Answer): string[] {
  const operation = operationAt(method, target);
  const isHead = method === 'HEAD';
  if (operation === null) return strayFaults(answer, isHead);
  const response = operation.responses[answer.status];
  if (response === undefined) return [`${operation.id} does not document ${answer.status}`];
  return [...headerFaults(response, answer), ...bodyFaults(operation, response, answer, isHead)].map(
    (fault) => `${operation.id} ${answer.status}: ${fault}`,
  );
}

/** A function that checks values against a schema of the document, which may name others. */
export function validatorOf(pointer: string): ValidateFunction {
  return ajv.getSchema(`${DOCUMENT_ID}#/${pointer}`) ?? ajv.compile({ $ref: `${DOCUMENT_ID}#/${pointer}` });
}

/** A function that checks the body of an operation that takes one. */
export function bodyValidator({ path, method }: DocumentOperation): ValidateFunction {
  const place = ['paths', path, method, 'requestBody', 'content', 'application/json', 'schema'];
  return validatorOf(place.map(escapePointer).join('/'));
}

/** The schema of this name. */
export function schemaValidator(name: string): ValidateFunction {
  return validatorOf(`components/schemas/${name}`);
}

function strayFaults(answer: Answer, isHead: boolean): string[] {
  if (isHead) return answer.status >= 400 ? [] : [`HEAD of nothing is ${answer.status}`];
  const faults = schemaFaults(schemaValidator('Problem'), answer.text);
  if (faults.length > 0) return faults;
  const { code } = JSON.parse(answer.text) as { code: string };
  return STRAY_CODES.includes(code) ? [] : [`no operation, but ${answer.status} ${code}`];
}

function bodyFaults(
  operation: DocumentOperation,
  response: DocumentResponse,
  answer: Answer,
  isHead: boolean,
): string[] {
  const [type] = Object.keys(response.content ?? {});
  if (type === undefined || isHead) return answer.text === '' ? [] : ['it has a body that is not described'];
  const sent = (answer.headers['content-type'] ?? '').split(';')[0];
  if (sent !== type) return [`it is ${sent}, not ${type}`];
  if (!type.endsWith('json')) return [];
  const faults = schemaFaults(validatorOf(operation.pointerTo(String(answer.status), type)), answer.text);
  const codes = response['x-codes'];
  if (faults.length > 0 || codes === undefined) return faults;
  const { code } = JSON.parse(answer.text) as { code: string };
  return codes.includes(code) ? [] : [`${code} is not among its codes`];
}

function schemaFaults(validate: ValidateFunction, text: string): string[] {
  if (validate(JSON.parse(text))) return [];
  return validate.errors!.map(
    ({ instancePath, message, params }) => `${instancePath || '/'} ${message} ${JSON.stringify(params)}`,
  );
}

function headerFaults(response: DocumentResponse, answer: Answer): string[] {
  const described = Object.keys(response.headers);
  const missing = described.filter(
    (name) => DOCUMENT.components.headers[name]!.required && answer.headers[name.toLowerCase()] === undefined,
  );
  const strange = SPEAKING_HEADERS.filter(
    (name) => answer.headers[name] !== undefined && !described.some((known) => known.toLowerCase() === name),
  );
  const wrong = described.filter((name) => {
    const text = answer.headers[name.toLowerCase()];
    if (text === undefined) return false;
    const { type } = DOCUMENT.components.headers[name]!.schema;
    return !validatorOf(`components/headers/${name}/schema`)(type === 'integer' ? Number(text) : text);
  });
  return [
    ...missing.map((name) => `the header ${name} is missing`),
    ...strange.map((name) => `the header ${name} is not described`),
    ...wrong.map((name) => `the header ${name} is ${String(answer.headers[name.toLowerCase()])}`),
  ];
}

/** The document with every object closed: answers may get fields one day, but not without a description. */
function closed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(closed);
  if (typeof value !== 'object' || value === null) return value;
  const copy = Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, closed(inner)]));
  const isObjectSchema = 'properties' in copy && 'type' in copy && !('additionalProperties' in copy);
  return isObjectSchema ? { ...copy, additionalProperties: false } : copy;
}
