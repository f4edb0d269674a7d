import type { AttemptErrorKind } from './attempt-result.js';

const MAX_MESSAGE_LENGTH = 500;

/** Why an attempt failed. */
export class EgressError extends Error {
  constructor(
    readonly kind: AttemptErrorKind,
    message: string,
  ) {
    super(message);
  }
}

/** Text of a receiver or a library made fit for a log line: no control or invisible characters, bounded. */
export function printable(text: string, maxLength = MAX_MESSAGE_LENGTH): string {
  return text.slice(0, maxLength).replace(/[\p{C}\p{Zl}\p{Zp}]/gu, '?');
}

/** Sorts any error of the network stack into the kinds that retry policies and people know. */
export function toEgressError(error: unknown): EgressError {
  if (error instanceof EgressError) return error;
  const { code, message } = codeAndMessage(error);
  return new EgressError(kindOf(code), code === '' ? message : `${message} (${code})`);
}

function kindOf(code: string): AttemptErrorKind {
  switch (code) {
    case 'ECONNREFUSED':
      return 'connection_refused';
    case 'ECONNRESET':
    case 'EPIPE':
    case 'ECONNABORTED':
      return 'connection_reset';
    case 'EMFILE':
    case 'ENFILE':
    case 'ENOBUFS':
    case 'ENOMEM':
      return 'out_of_resources';
    case 'ETIMEDOUT': // the kernel's own patience
      return 'timeout';
    default:
      return code.startsWith('ERR_SSL_') || code.startsWith('ERR_TLS_') ? 'tls_error' : 'network_error';
  }
}

function codeAndMessage(error: unknown): { code: string; message: string } {
  if (!(error instanceof Error)) return { code: '', message: 'unknown error' };
  const code = 'code' in error && typeof error.code === 'string' ? error.code : '';
  // Several addresses tried in turn give an AggregateError without a message of its own.
  const first: unknown = error instanceof AggregateError ? error.errors[0] : undefined;
  return { code, message: error.message || (first instanceof Error ? first.message : 'no message') };
}

/** The kind of a failed lookup. Everything that is neither an answer nor silence counts as the server's failure. */
export function toLookupError(error: unknown): EgressError {
  const { code } = codeAndMessage(error);
  switch (code) {
    case 'ENOTFOUND':
    case 'ENODATA':
    case 'EAI_NONAME':
    case 'EAI_NODATA':
      return new EgressError('dns_notfound', `the host name has no address (${code})`);
    case 'ETIMEOUT':
    case 'ETIMEDOUT':
      return new EgressError('dns_timeout', `the name server did not answer (${code})`);
    default:
      return new EgressError(
        'dns_servfail',
        `the host name could not be looked up (${printable(code, 40) || 'no code'})`,
      );
  }
}
