import { Catch, type ArgumentsHost, type ExceptionFilter } from '@nestjs/common';
import type { Request, Response } from 'express';
import { AppError } from '#runtime';
import { ApiContext } from './api-context.js';
import { allowedMethods } from './http/allowed-methods.js';
import { answerError } from './http/answer-error.js';
import { stateOf } from './http/request-state.js';
import { codeOf } from './http/to-problem.js';

/** Turns every error of a Nest route into a problem+json, and a path that exists for other methods into a 405. */
@Catch()
export class ProblemFilter implements ExceptionFilter {
  constructor(private readonly context: ApiContext) {}

  catch(error: unknown, host: ArgumentsHost): void {
    const request = host.switchToHttp().getRequest<Request>();
    const response = host.switchToHttp().getResponse<Response>();
    const { requestId } = stateOf(request);
    const route = (request.route as { path?: string } | undefined)?.path ?? 'unmatched';
    const methods = codeOf(error) === 'route_not_found' ? allowedMethods(request) : [];
    if (methods.length > 0 && !response.headersSent) response.setHeader('allow', methods.join(', '));
    const shown = methods.length > 0 ? new AppError('method_not_allowed') : error;
    answerError(this.context, { request, response, requestId, route }, shown);
  }
}
