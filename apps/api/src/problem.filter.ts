import { Catch, type ArgumentsHost, type ExceptionFilter } from '@nestjs/common';
import type { Request, Response } from 'express';
import { AppError, sqlState } from '#runtime';
import { ApiContext } from './api-context.js';
import { allowedMethods } from './http/allowed-methods.js';
import { stateOf } from './http/request-state.js';
import { sendProblem } from './http/send-problem.js';
import { toProblem, type Problem } from './http/to-problem.js';

/** Turns every error into a problem+json: the one place that speaks statuses. */
@Catch()
export class ProblemFilter implements ExceptionFilter {
  constructor(private readonly context: ApiContext) {}

  catch(error: unknown, host: ArgumentsHost): void {
    const request = host.switchToHttp().getRequest<Request>();
    const response = host.switchToHttp().getResponse<Response>();
    const { requestId } = stateOf(request);
    let problem = toProblem(error, requestId);
    if (problem.ours) this.log(error, problem, request);
    if (response.headersSent) {
      response.destroy();
      return;
    }
    if (problem.body.code === 'route_not_found') {
      const methods = allowedMethods(request);
      if (methods.length > 0) {
        problem = toProblem(new AppError('method_not_allowed'), requestId);
        response.setHeader('allow', methods.join(', '));
      }
    }
    sendProblem(response, problem);
  }

  /** The message and stack only: a driver's error also carries the statement's parameters. */
  private log(error: unknown, problem: Problem, request: Request): void {
    const known = error instanceof Error ? error : new Error(String(error));
    this.context.logger.error({
      event: 'request.failed',
      request_id: problem.body.request_id,
      method: request.method,
      route: (request.route as { path?: string } | undefined)?.path,
      code: problem.body.code,
      sql_state: sqlState(error),
      error_name: known.name,
      error_message: known.message,
      stack: problem.body.code === 'internal_error' ? known.stack : undefined,
    });
  }
}
