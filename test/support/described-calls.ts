import type { OutgoingHttpHeaders } from 'node:http';

import { expect } from 'vitest';

import type { ApiClient, ApiResponse } from './api-client.js';
import { faultsOf } from './check-described.js';
import { type DocumentSchema, OPERATIONS, operationOf } from './openapi-document.js';

type Body = Record<string, unknown>;

/** What a call fills an operation with; ids that are not given are those of nobody. */
export interface CallOptions {
  readonly path?: Readonly<Record<string, string>>;
  readonly query?: string;
  readonly body?: object | string;
  readonly headers?: OutgoingHttpHeaders;
}

/** Calls operations by their ids, and holds every answer to the document. */
export interface DescribedCalls {
  call(client: ApiClient, id: string, options?: CallOptions): Promise<ApiResponse<Body>>;
  /** Statuses that were seen, by operation. */
  readonly seen: ReadonlyMap<string, ReadonlySet<number>>;
}

/** Starts with nothing seen. */
export function describeCalls(): DescribedCalls {
  const seen = new Map<string, Set<number>>(OPERATIONS.map(({ id }) => [id, new Set()]));
  return {
    seen,
    async call(client, id, { path = {}, query = '', body, headers } = {}) {
      const { method, path: template } = operationOf(id);
      const target = targetOf(id, path) + query;
      const answer = await send(client, method, target, body, headers);
      expect({ request: `${method} ${template}${query}`, faults: faultsOf(method, target, answer) }).toEqual({
        request: `${method} ${template}${query}`,
        faults: [],
      });
      seen.get(id)!.add(answer.status);
      return answer;
    },
  };
}

/** The path of an operation with these ids in it; nobody's where none are given. */
export function targetOf(id: string, given: Readonly<Record<string, string>> = {}): string {
  const { path, parameters } = operationOf(id);
  return parameters
    .filter((parameter) => parameter.in === 'path')
    .reduce(
      (target, { name, schema }) => target.replace(`{${name}}`, given[name] ?? idOfNobody(schema)),
      path,
    );
}

/** An id that fits the schema's pattern and is nobody's. */
function idOfNobody({ pattern }: DocumentSchema): string {
  const prefix = /^\^([a-z]+_)\[/.exec(String(pattern))?.[1];
  if (prefix === undefined) throw new Error(`no id looks like ${String(pattern)}`);
  return `${prefix}${'0'.repeat(32)}`;
}

function send(
  client: ApiClient,
  method: string,
  target: string,
  body: object | string | undefined,
  headers: OutgoingHttpHeaders | undefined,
): Promise<ApiResponse<Body>> {
  switch (method) {
    case 'get':
      return client.get(target, headers);
    case 'delete':
      return client.delete(target, body, headers);
    case 'patch':
      return client.patch(target, body, headers);
    case 'post':
      return client.post(target, body, headers);
    default:
      throw new Error(`no client sends ${method}`);
  }
}
