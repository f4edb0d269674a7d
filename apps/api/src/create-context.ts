import { Endpoint, EndpointSecret, Subscription } from '#endpoints';
import { parseEgressPolicy } from '#egress';
import { acceptEvents, createHints } from '#outbox';
import { openDataSource, createPool, type Config, type Logger } from '#runtime';
import type { Keyring } from '#secrets';
import { ApiKey, Tenant } from '#tenants';
import { ApiContext } from './api-context.js';
import { createAuthenticate } from './auth/authenticate.js';
import { Lifecycle } from './lifecycle.js';
import { createMetrics } from './metrics/create-metrics.js';
import { createGroupAccept } from './publish/group-accept.js';
import { Turns } from './publish/turns.js';

/**
 * A key that another transaction holds makes its requests wait in turns of this long, on four connections of their own:
 * measured, one held key kept 127 strangers waiting for 3.5 s when all shared one lane.
 */
const KEY_LOCK_WAIT_MS = 200;
const KEYED_CONNECTIONS = 4;
/** A batch is one statement however far it fans out: 1,000 events to 300 endpoints each took over 10 s. */
const BATCH_TIMEOUT_MS = 120_000;
const BATCH_CONNECTIONS = 4;
const LOCK_WAIT_MS = 2_000;
const STATEMENT_TIMEOUT_MS = 10_000;

/** Opens the pools and gives what the controllers work with; `close` waits for hints and ends the pools. */
export async function createContext(
  config: Config,
  keyring: Keyring,
  logger: Logger,
): Promise<{ context: ApiContext; close(): Promise<void> }> {
  const egressPolicy = parseEgressPolicy({
    allow: config.egressAllow,
    deny: config.egressDeny,
    allowHttp: config.allowHttp,
  });
  const onIdleError = (error: Error): void =>
    logger.warn({ event: 'database.connection_lost', message: error.message });
  const pool = { url: config.databaseUrl, statementTimeoutMs: STATEMENT_TIMEOUT_MS, onIdleError };
  const acceptPool = createPool({
    ...pool,
    max: 10,
    applicationName: 'waybill-api-accept',
    lockTimeoutMs: LOCK_WAIT_MS,
    genericPlans: true,
  });
  const keyedPool = createPool({
    ...pool,
    max: KEYED_CONNECTIONS,
    applicationName: 'waybill-api-keyed',
    lockTimeoutMs: KEY_LOCK_WAIT_MS,
    genericPlans: true,
  });
  const batchPool = createPool({
    ...pool,
    max: BATCH_CONNECTIONS,
    applicationName: 'waybill-api-batch',
    statementTimeoutMs: BATCH_TIMEOUT_MS,
    lockTimeoutMs: KEY_LOCK_WAIT_MS,
    genericPlans: true,
  });
  const readPool = createPool({
    ...pool,
    max: 8,
    applicationName: 'waybill-api-read',
    lockTimeoutMs: LOCK_WAIT_MS,
  });
  const source = await openDataSource({
    url: config.databaseUrl,
    entities: [Tenant, ApiKey, Endpoint, EndpointSecret, Subscription],
    applicationName: 'waybill-api',
    max: 4,
  });
  const accept = createGroupAccept((inputs) =>
    acceptEvents(acceptPool, inputs, { maxAgeMs: config.maxAgeMs }),
  );
  const hints = createHints(readPool, (error) =>
    logger.warn({ event: 'hint.failed', message: String(error) }),
  );
  const lifecycle = new Lifecycle();
  const metrics = createMetrics(() => lifecycle.openCount);
  const context = new ApiContext(
    config,
    logger,
    createAuthenticate(readPool),
    source,
    keyring,
    acceptPool,
    keyedPool,
    new Turns(),
    batchPool,
    accept,
    readPool,
    egressPolicy,
    hints,
    metrics,
    lifecycle,
  );
  return {
    context,
    async close() {
      await hints.settled();
      await Promise.all([
        source.destroy(),
        acceptPool.end(),
        keyedPool.end(),
        batchPool.end(),
        readPool.end(),
      ]);
    },
  };
}
