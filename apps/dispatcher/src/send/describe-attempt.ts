import type { AttemptResult } from '#egress';
import type { AttemptRecord } from '#outbox';

/** An attempt in the words of its row: any 2xx is a success, everything else a failure with its kind. */
export function describeAttempt(result: AttemptResult, startedAtMs: number): AttemptRecord {
  const { durationMs } = result;
  if (result.kind === 'failure') {
    return {
      outcome: 'failed',
      statusCode: null,
      errorKind: result.error,
      error: result.message,
      responseBody: null,
      startedAtMs,
      durationMs,
    };
  }
  const succeeded = result.status >= 200 && result.status <= 299;
  const location = result.location === null ? '' : ` to ${result.location}`;
  return {
    outcome: succeeded ? 'succeeded' : 'failed',
    statusCode: result.status,
    errorKind: succeeded ? null : 'http_status',
    error: succeeded ? null : `the receiver answered ${result.status}${location}`.slice(0, 500),
    responseBody: result.body.length === 0 ? null : result.body,
    startedAtMs,
    durationMs,
  };
}
