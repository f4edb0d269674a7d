import { HttpException } from '@nestjs/common';
import {
  AppError,
  ERRORS,
  isDatabaseUnavailable,
  sqlState,
  type ErrorCode,
  type ErrorDetail,
} from '#runtime';

/** RFC 9457, with a stable code, the request's id, and the places that were refused. */
export interface ProblemBody {
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly detail: string;
  readonly code: ErrorCode;
  readonly request_id: string;
  readonly details?: readonly ErrorDetail[];
}

/** A problem on its way out. */
export interface Problem {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: ProblemBody;
  /** True when it is our fault and the error behind it belongs in the log. */
  readonly ours: boolean;
}

// Waits and statements that the database cut short: nothing is wrong with the request, it may come again.
const BUSY = new Set(['55P03', '57014', '40P01', '40001', '25P03']);

const CODES_BY_STATUS: Readonly<Record<number, ErrorCode>> = {
  400: 'invalid_request',
  404: 'route_not_found',
  405: 'method_not_allowed',
  408: 'request_timeout',
  413: 'body_too_large',
  415: 'unsupported_content_type',
};

/** The answer to any error: what an AppError says, and of any other nothing but that it happened. */
export function toProblem(error: unknown, requestId: string): Problem {
  const known = toAppError(error);
  const { status, title } = ERRORS[known.code];
  const headers: Record<string, string> = {};
  if (status === 401) headers['www-authenticate'] = 'Bearer';
  if (known.retryAfterSeconds !== null) headers['retry-after'] = String(known.retryAfterSeconds);
  const body: ProblemBody = {
    type: `/errors/${known.code}`,
    title,
    status,
    detail: known.message,
    code: known.code,
    request_id: requestId,
    ...(known.details.length > 0 ? { details: known.details } : {}),
  };
  return { status, headers, body, ours: known !== error && status >= 500 };
}

/** The code under which an error would be answered. */
export function codeOf(error: unknown): ErrorCode {
  return toAppError(error).code;
}

function toAppError(error: unknown): AppError {
  if (error instanceof AppError) return error;
  if (isDatabaseUnavailable(error) || BUSY.has(sqlState(error) ?? '')) {
    return new AppError('database_unavailable', undefined, { retryAfterSeconds: 1, cause: error });
  }
  const code = CODES_BY_STATUS[clientStatus(error)];
  return new AppError(code ?? 'internal_error', undefined, { cause: error });
}

/** The 4xx that Nest or Express gave an error of theirs; 0 for any other error. */
function clientStatus(error: unknown): number {
  if (error instanceof HttpException) return error.getStatus();
  const status = error instanceof Error ? (error as { status?: unknown }).status : undefined;
  return typeof status === 'number' && status >= 400 && status < 500 ? status : 0;
}
