import 'reflect-metadata';
import { once } from 'node:events';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import {
  assertSchemaRevision,
  createDayPartitions,
  createLogger,
  readConfig,
  type Config,
  type Logger,
} from '#runtime';
import { createContext } from './create-context.js';
import { createServer } from './create-server.js';
import { reportStartFailure } from './report-start-failure.js';

/** Every request is answered by then: what is left is to close connections that nobody waits for. */
const CLOSE_MS = 1_000;

/** Starts the api; resolves when it takes requests. It stops on SIGTERM, SIGINT, or when its parent is gone. */
async function main(): Promise<void> {
  const config = readConfig(process.env);
  const logger = createLogger('api', config.logLevel);
  const opened = await createContext(config, logger);
  const { context } = opened;
  await assertSchemaRevision(context.readPool);
  await createDayPartitions(context.readPool);
  const app = await createServer(context);
  const url = await listen(app.server, config);

  onStopSignal(async (reason) => {
    logger.info({ event: 'api.stopping', reason });
    await context.lifecycle.stop(app.server, config.graceMs);
    await within(
      CLOSE_MS,
      app.close().then(() => opened.close()),
    );
    logger.info({ event: 'api.stopped' });
  }, logger);
  logger.info({ event: 'api.ready', url });
  process.send?.({ type: 'ready', url });
}

/** Waits for the work, but no longer: a database that has gone silent must not keep the process alive. */
async function within(timeoutMs: number, work: Promise<void>): Promise<void> {
  await Promise.race([work, new Promise((resolve) => setTimeout(resolve, timeoutMs))]);
}

async function listen(server: Server, config: Config): Promise<string> {
  server.listen({ port: config.apiPort, host: config.host });
  await once(server, 'listening');
  const { address, family, port } = server.address() as AddressInfo;
  return `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`;
}

function onStopSignal(stop: (reason: string) => Promise<void>, logger: Logger): void {
  let stopping = false;
  const begin = (reason: string): void => {
    if (stopping) return;
    stopping = true;
    stop(reason).then(
      () => process.exit(0),
      (error: unknown) => {
        logger.error({ event: 'api.stop_failed', message: String(error) });
        process.exit(1);
      },
    );
  };
  process.on('SIGTERM', () => begin('SIGTERM'));
  process.on('SIGINT', () => begin('SIGINT'));
  if (process.connected) process.on('disconnect', () => begin('disconnect'));
}

main().catch((error: unknown) => {
  reportStartFailure(error, process.env);
  process.exit(1);
});
