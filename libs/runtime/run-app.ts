import { AppError } from './app-error.js';
import type { Logger } from './logger.js';

/** A process's working parts, once they run. */
export interface RunningApp {
  readonly url: string;
  /** Ends what is under way, then closes everything. Called once. */
  stop(): Promise<void>;
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
      await app?.stop();
      logger.info({ event: `${name}.stopped` });
      process.exit(0);
    } catch (error) {
      logger.error({ event: `${name}.stop_failed`, err: error });
      process.exit(1);
    }
  };
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => void stop(signal));
  if (process.send !== undefined) process.on('disconnect', () => void stop('the parent process is gone'));

  try {
    app = await start();
    logger.info({ event: `${name}.ready`, url: app.url });
    process.send?.({ type: 'ready', url: app.url });
  } catch (error) {
    refuse(name, logger, error);
  }
}

/** Ends the process with the reason on standard error for people, and in the log for machines. */
export function refuse(name: string, logger: Logger, error: unknown): never {
  logger.fatal({ event: `${name}.refused`, err: error });
  process.stderr.write(`waybill ${name} does not start: ${explain(error)}\n`);
  process.exit(1);
}

function explain(error: unknown): string {
  if (error instanceof AppError) return error.message;
  const { code, port, message } = error as { code?: string; port?: number; message?: string };
  if (code === 'EADDRINUSE')
    return `port ${port} is in use; choose another by WAYBILL_PORT or WAYBILL_DISPATCHER_PORT.`;
  return message ? message : String(error);
}
