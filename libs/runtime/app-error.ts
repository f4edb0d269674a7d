import type { DetailReason } from './detail-reasons.js';
import { ERRORS, type ErrorCode } from './error-table.js';

/** One place in the request that was refused, and why in a word: the sentence for people is the error's message. */
export interface ErrorDetail {
  readonly field: string;
  readonly reason: DetailReason;
}

export interface AppErrorOptions {
  readonly details?: readonly ErrorDetail[];
  readonly retryAfterSeconds?: number;
  readonly cause?: unknown;
}

/**
 * An ending that a caller can act on: a stable `code` from the error table and a sentence for people. Libs throw
 * it; only the api's problem filter turns it into a status.
 */
export class AppError extends Error {
  readonly code: ErrorCode;
  readonly details: readonly ErrorDetail[];
  readonly retryAfterSeconds: number | null;

  constructor(code: ErrorCode, message?: string, options: AppErrorOptions = {}) {
    super(message ?? ERRORS[code].title, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'AppError';
    this.code = code;
    this.details = options.details ?? [];
    this.retryAfterSeconds = options.retryAfterSeconds ?? null;
  }
}
