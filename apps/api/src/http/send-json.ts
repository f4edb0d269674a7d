import type { ServerResponse } from 'node:http';

/** Writes a value as the whole answer, with the headers that Express gives one. */
export function sendJson(
  response: ServerResponse,
  status: number,
  body: object,
  headers: Readonly<Record<string, string>> = {},
): void {
  const text = JSON.stringify(body);
  response.writeHead(status, {
    ...headers,
    'content-type': 'application/json; charset=utf-8',
    'content-length': Buffer.byteLength(text),
  });
  // A text goes out in one write with the head before it, a buffer in two.
  response.end(text);
}
