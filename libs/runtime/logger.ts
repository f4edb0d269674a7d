import { pino, type DestinationStream, type Logger } from 'pino';
import { errorCode } from './error-code.js';

export type { Logger } from 'pino';

/** What a reader that has stopped reading may make us keep; lines beyond it are dropped. */
const BACKLOG_CHARACTERS_MAX = 8_388_608;

/** Names of fields that may hold a credential. */
const CREDENTIALS = new Set(['authorization', 'secret', 'key', 'databaseUrl']);

/**
 * JSON lines on standard output, or at `destination`. Credentials are cut out by their field's name, however deep, if
 * they are logged by mistake; payloads are never logged.
 */
export function createLogger(
  app: string,
  level: string,
  destination: DestinationStream = standardOutput(),
): Logger {
  const options = {
    // An unknown level is refused by readConfig, in its list with every other fault; until then somebody must be able to log.
    level: level in pino.levels.values || level === 'silent' ? level : 'info',
    base: { app, pid: process.pid },
    timestamp: isoTime,
    serializers: { err: describeError },
    formatters: { log: withoutCredentials },
  };
  return pino(options, destination);
}

let timeMs = 0;
let timeText = '';

/** The time as pino writes it, made once a millisecond: a batch logs a hundred lines in one, and each cost 4 µs. */
function isoTime(): string {
  const now = Date.now();
  if (now !== timeMs) {
    timeMs = now;
    timeText = `,"time":"${new Date(now).toISOString()}"`;
  }
  return timeText;
}

/** Our own, and not pino's redaction, which copies every line before it looks: that cost more than the line itself. */
function withoutCredentials(fields: Record<string, unknown>): Record<string, unknown> {
  let safe = fields;
  for (const name of Object.keys(fields)) {
    const value = fields[name];
    const shown = CREDENTIALS.has(name)
      ? '[redacted]'
      : isPlainObject(value)
        ? withoutCredentials(value)
        : value;
    if (shown === value) continue;
    if (safe === fields) safe = { ...fields };
    safe[name] = shown;
  }
  return safe;
}

function isPlainObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype;
}

/**
 * Of an error its name, message, code and stack, and nothing else that hangs on it: a driver's error also carries the
 * failing row, the statement's parameters, or the URL it could not read.
 */
function describeError(error: unknown): object {
  if (!(error instanceof Error)) return { type: typeof error, message: String(error) };
  const code = errorCode(error);
  // Of several addresses that all refused, Node makes an error without a message.
  return { type: error.name, message: error.message || code, code, stack: error.stack };
}

/**
 * Standard output that can neither stop nor end the process. pino's own destination waits in a loop that blocks the
 * event loop when its reader is gone (a launcher killed with SIGKILL left a dispatcher that would not stop); a log is
 * worth less than a lease, so lines are dropped instead. The lines of one turn of the event loop go out in one write:
 * a batch of 100 events logs 100 lines, and each write is a system call.
 */
function standardOutput(): DestinationStream {
  const { stdout } = process;
  stdout.on('error', () => {
    gone = true;
  });
  process.once('exit', writeLines);
  return {
    write(line) {
      if (gone || stdout.writableLength + lines.length > BACKLOG_CHARACTERS_MAX) return;
      if (lines === '') setImmediate(writeLines);
      lines += line;
    },
  };
}

/** Whoever read them is gone. */
let gone = false;
/** Lines of this turn that are still to be written. */
let lines = '';

function writeLines(): void {
  if (lines !== '') process.stdout.write(lines);
  lines = '';
}

/** Resolves when what was logged so far is written, or after `timeoutMs` if nobody reads it. */
export async function flushLog(timeoutMs: number): Promise<void> {
  writeLines();
  if (process.stdout.writableLength === 0) return;
  await new Promise<void>((resolve) => {
    const late = setTimeout(resolve, timeoutMs);
    process.stdout.write('', () => {
      clearTimeout(late);
      resolve();
    });
  });
}
