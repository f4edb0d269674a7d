import { AppError } from './app-error.js';
import { isDatabaseUnavailable } from './database.js';
import { flushLog, type Logger } from './logger.js';
import { unknownSettings } from './settings.js';

/** How long an ending process waits for whoever reads its log. */
const FLUSH_MS = 1_000;

/** A process's working parts, once they run. */
export interface RunningApp {
  readonly url: string;
  /** Ends what is under way, then closes everything. Called once. */
  stop(): Promise<void>;
  /** How long that may take before the process ends all the same, for instance on a database that never answers. */
  readonly stopTimeoutMs: number;
}

/**
 * Runs a Waybill process from start to exit. It says that it is ready in its log and, to a parent with an ipc
 * channel, as `{ type: 'ready', url }`. SIGTERM, SIGINT or the parent's end stop it gracefully with exit code 0; a
 * start that fails, or a stop that does, ends with 1 and the reason.
 */
export async function runApp(name: string, logger: Logger, start: () => Promise<RunningApp>): Promise<void> {
  let stopping = false;
  let app: RunningApp | null = null;

  const stop = async (reason: string): Promise<void> => {
    if (stopping) return;
    stopping = true;
    logger.info({ event: `${name}.stopping`, reason });
    try {
      const ended = app === null || (await endsWithin(app.stopTimeoutMs, app.stop()));
      if (ended) logger.info({ event: `${name}.stopped` });
      else logger.warn({ event: `${name}.cut_short`, after_ms: app!.stopTimeoutMs });
    } catch (error) {
      logger.error({ event: `${name}.stop_failed`, err: error });
      process.exitCode = 1;
    }
    await flushLog(FLUSH_MS);
    process.exit();
  };
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => void stop(signal));
  if (process.send !== undefined) process.on('disconnect', () => void stop('the parent process is gone'));

  for (const { name: variable, nearest } of unknownSettings(process.env)) {
    logger.warn({ event: 'setting.unknown', variable, did_you_mean: nearest });
  }
  try {
    app = await start();
    logger.info({ event: `${name}.ready`, url: app.url });
    process.send?.({ type: 'ready', url: app.url });
  } catch (error) {
    await refuse(name, logger, error);
  }
}

async function endsWithin(timeoutMs: number, work: Promise<void>): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(false), timeoutMs);
  });
  return Promise.race([work.then(() => true), late]).finally(() => clearTimeout(timer));
}

/** Ends the process with the reason on standard error for people, and in the log for machines. */
async function refuse(name: string, logger: Logger, error: unknown): Promise<never> {
  logger.fatal({ event: `${name}.refused`, err: error });
  process.stderr.write(`waybill ${name} does not start: ${explainFailure(error)}\n`);
  await flushLog(FLUSH_MS);
  process.exit(1);
}

/** Why something did not start, in a sentence for people: what is wrong and which setting mends it. */
export function explainFailure(error: unknown): string {
  if (error instanceof AppError) return error.message;
  const { code, syscall, port, message } = error as NodeJS.ErrnoException & { port?: number };
  if (code === 'EADDRINUSE') {
    return `port ${port} is in use; choose another by WAYBILL_PORT or WAYBILL_DISPATCHER_PORT (0 lets the system pick).`;
  }
  if (syscall === 'listen')
    return `it cannot listen on port ${port} (${code}); check WAYBILL_HOST and the port.`;
  if (isDatabaseUnavailable(error))
    return `the database of DATABASE_URL cannot be reached: ${message || code}`;
  return message || String(error);
}
