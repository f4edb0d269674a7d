import 'reflect-metadata';
import { once } from 'node:events';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import {
  assertSchemaRevision,
  createDayPartitions,
  createLogger,
  readConfig,
  runApp,
  type Config,
  type RunningApp,
} from '#runtime';
import { assertEncryptionKey, createKeyring } from '#secrets';
import { createContext } from './create-context.js';
import { createServer } from './create-server.js';

/** Beyond the grace time of open requests: hints, pools, connections. */
const CLOSE_MS = 5_000;

const logger = createLogger('api', process.env['WAYBILL_LOG_LEVEL'] || 'info');

await runApp('api', logger, start);

async function start(): Promise<RunningApp> {
  const config = readConfig(process.env);
  const keyring = createKeyring(config.encryptionKeys);
  const { context, close } = await createContext(config, keyring, logger);
  await assertSchemaRevision(context.platformPool, 'waybill_operator');
  await context.intake.assertReady();
  await assertEncryptionKey(context.platformPool, keyring);
  await createDayPartitions(context.platformPool);
  const { server, close: closeApp } = await createServer(context);
  return {
    url: await listen(server, config),
    stopTimeoutMs: config.graceMs + CLOSE_MS,
    async stop() {
      await context.lifecycle.stop(server, config.graceMs);
      await closeApp();
      await close();
    },
  };
}

async function listen(server: Server, config: Config): Promise<string> {
  server.listen({ port: config.apiPort, host: config.host });
  await once(server, 'listening');
  const { address, family, port } = server.address() as AddressInfo;
  return `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`;
}
