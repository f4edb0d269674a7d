import { sqlState } from '#runtime';
import type { ApiContext } from '../api-context.js';
import { sendProblem } from './send-problem.js';
import { toProblem, type Problem } from './to-problem.js';
import type { Visit } from './visit.js';

/** Answers a request with the problem that an error is; the log learns of it when it is our fault. */
export function answerError(context: ApiContext, visit: Omit<Visit, 'query'>, error: unknown): void {
  const problem = toProblem(error, visit.requestId);
  if (problem.ours) log(context, visit, error, problem);
  if (visit.response.headersSent) visit.response.destroy();
  else sendProblem(visit.response, problem);
}

/** The message and stack only: a driver's error also carries the statement's parameters. */
function log(context: ApiContext, visit: Omit<Visit, 'query'>, error: unknown, problem: Problem): void {
  const known = error instanceof Error ? error : new Error(String(error));
  context.logger.error({
    event: 'request.failed',
    request_id: visit.requestId,
    method: visit.request.method,
    route: visit.route,
    code: problem.body.code,
    sql_state: sqlState(error),
    error_name: known.name,
    error_message: known.message,
    stack: problem.body.code === 'internal_error' ? known.stack : undefined,
  });
}
