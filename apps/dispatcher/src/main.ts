import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
import type { NestExpressApplication } from '@nestjs/platform-express';
import { parseEgressPolicy } from '#egress';
import {
  assertSchemaRevision,
  createDayPartitions,
  createLogger,
  nestLogger,
  readConfig,
  runApp,
  type Config,
  type RunningApp,
} from '#runtime';
import { assertEncryptionKey, createKeyring, sealClearSecrets } from '#secrets';
import { DispatcherModule } from './dispatcher.module.js';
import { Engine } from './engine.js';
import { gauge } from './health/metrics.js';

/** Beyond the grace time: recording what is known, closing sockets and connections. */
const CLOSE_MS = 5_000;

const logger = createLogger('dispatcher', process.env['WAYBILL_LOG_LEVEL'] || 'info');

await runApp('dispatcher', logger, start);

async function start(): Promise<RunningApp> {
  const config = readConfig(process.env);
  const keyring = createKeyring(config.encryptionKeys);
  const policy = parseEgressPolicy({
    allow: config.egressAllow,
    deny: config.egressDeny,
    allowHttp: config.allowHttp,
  });
  const engine = new Engine(config, policy, keyring, logger);
  await assertSchemaRevision(engine.db, 'waybill_dispatcher');
  await assertEncryptionKey(engine.db, keyring);
  const sealed = await sealClearSecrets(engine.db, keyring);
  if (sealed > 0) logger.info({ event: 'secrets.sealed', count: sealed });
  await createDayPartitions(engine.db);
  const app = await createApp(config, engine);
  await app.listen(config.dispatcherPort, config.host);
  gauge('waybill_dispatcher_in_flight', 'Deliveries this process is sending.', () => engine.inFlight);
  gauge(
    'waybill_dispatcher_unrecorded',
    'Outcomes that wait to be recorded.',
    () => engine.recorder.unrecorded,
  );
  gauge(
    'waybill_dispatcher_slow_lane',
    'Of those, what is in the slow lane: over a second, or to an endpoint known for it.',
    () => engine.scheduler.inSlowLane,
  );
  gauge(
    'waybill_sweep_round_seconds',
    'How long the last walk over every owed endpoint took: how late an unannounced commit can be found.',
    () => engine.scheduler.sweepRoundSeconds,
  );
  engine.start();
  return {
    url: await app.getUrl(),
    stopTimeoutMs: config.graceMs + CLOSE_MS,
    async stop() {
      await engine.stop();
      await app.close();
    },
  };
}

async function createApp(config: Config, engine: Engine): Promise<NestExpressApplication> {
  const app = await NestFactory.create<NestExpressApplication>(DispatcherModule.of(config, engine), {
    logger: nestLogger(logger),
    bodyParser: false,
    abortOnError: false,
  });
  app.disable('x-powered-by');
  return app;
}
