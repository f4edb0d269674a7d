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
    await app.close();
    await opened.close();
    logger.info({ event: 'api.stopped' });
  }, logger);
  logger.info({ event: 'api.ready', url });
  process.send?.({ type: 'ready', url });
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
