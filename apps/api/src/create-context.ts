import { parseEgressPolicy } from '#egress';
import { Endpoint, EndpointSecret, Subscription } from '#endpoints';
import { createHints } from '#outbox';
import { createPool, openDataSource, type Config, type Logger } from '#runtime';
import { ApiKey, Consumer, Tenant, withTenant } from '#tenants';
import { ApiContext } from './api-context.js';
import { Lifecycle } from './lifecycle.js';
import { createMetrics } from './metrics/create-metrics.js';
import { createIntake } from './publish/intake.js';

/** Opens the pools and gives what the controllers work with; `close` waits for hints and ends the pools. */
export async function createContext(
  config: Config,
  logger: Logger,
): Promise<{ context: ApiContext; close(): Promise<void> }> {
  const egressPolicy = parseEgressPolicy({
    allow: config.egressAllow,
    deny: config.egressDeny,
    allowHttp: config.allowHttp,
  });
  const onIdleError = (error: Error): void =>
    logger.warn({ event: 'database.connection_lost', message: error.message });
  const intake = createIntake(config, onIdleError);
  const platformPool = createPool({
    url: config.databaseUrl,
    role: 'waybill_operator',
    max: 4,
    applicationName: 'waybill-api-platform',
    statementTimeoutMs: 10_000,
    lockTimeoutMs: 2_000,
    onIdleError,
  });
  const source = await openDataSource({
    url: config.databaseUrl,
    role: 'waybill_app',
    entities: [Tenant, ApiKey, Consumer, Endpoint, EndpointSecret, Subscription],
    applicationName: 'waybill-api',
    max: 12,
  });
  const hints = createHints(platformPool, (error) =>
    logger.warn({ event: 'hint.failed', message: String(error) }),
  );
  const lifecycle = new Lifecycle();
  const metrics = createMetrics(() => lifecycle.openCount);
  const context = new ApiContext(
    config,
    logger,
    intake,
    (tenantId, run) => withTenant(source, tenantId, run),
    platformPool,
    egressPolicy,
    hints,
    metrics,
    lifecycle,
  );
  return {
    context,
    async close() {
      await hints.settled();
      await Promise.all([source.destroy(), intake.close(), platformPool.end()]);
    },
  };
}
