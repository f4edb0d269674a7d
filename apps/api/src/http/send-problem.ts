import type { ServerResponse } from 'node:http';
import type { Problem } from './to-problem.js';

/** Writes a problem as the whole answer. */
export function sendProblem(response: ServerResponse, problem: Problem): void {
  const body = Buffer.from(JSON.stringify(problem.body));
  for (const [name, value] of Object.entries(problem.headers)) response.setHeader(name, value);
  response.writeHead(problem.status, {
    'content-type': 'application/problem+json',
    'content-length': body.length,
  });
  response.end(response.req.method === 'HEAD' ? undefined : body);
}
