import { pino, type Logger } from 'pino';

export type { Logger } from 'pino';

/**
 * JSON lines on standard output. Credentials are cut out by path wherever they might be logged by mistake; payloads
 * are never logged.
 */
export function createLogger(app: string, level: string): Logger {
  return pino({
    level,
    base: { app, pid: process.pid },
    timestamp: pino.stdTimeFunctions.isoTime,
    redact: {
      paths: [
        'authorization',
        '*.authorization',
        'headers.authorization',
        'secret',
        '*.secret',
        'key',
        '*.key',
        'databaseUrl',
      ],
      censor: '[redacted]',
    },
  });
}
