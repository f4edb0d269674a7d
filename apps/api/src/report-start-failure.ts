import { AppError, isDatabaseUnavailable } from '#runtime';

/** Says on standard error why the api did not start: a JSON line for machines, then the sentence for people. */
export function reportStartFailure(error: unknown, env: Readonly<Record<string, string | undefined>>): void {
  const { code, message } = describe(error, env);
  const line = {
    level: 60,
    time: new Date().toISOString(),
    app: 'api',
    event: 'api.refused',
    code,
    message,
  };
  process.stderr.write(`${JSON.stringify(line)}\nwaybill api: ${message}\n`);
}

function describe(
  error: unknown,
  env: Readonly<Record<string, string | undefined>>,
): { code: string; message: string } {
  if (error instanceof AppError) return { code: error.code, message: error.message };
  const known = error instanceof Error ? error : new Error(String(error));
  const { code, syscall } = known as NodeJS.ErrnoException;
  if (syscall === 'listen') {
    const mend =
      code === 'EADDRINUSE'
        ? 'The port is in use: set WAYBILL_PORT to another (0 lets the system pick).'
        : 'Check WAYBILL_HOST and WAYBILL_PORT.';
    return {
      code: 'listen_failed',
      message: `Cannot listen on port ${env['WAYBILL_PORT'] ?? '8420'} (${code}). ${mend}`,
    };
  }
  if (isDatabaseUnavailable(error)) {
    return {
      code: 'database_unavailable',
      message: `The database of DATABASE_URL cannot be reached: ${known.message || code}`,
    };
  }
  return { code: 'internal_error', message: known.stack ?? known.message };
}
