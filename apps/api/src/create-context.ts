import { parseEgressPolicy } from '#egress';
import { Endpoint, EndpointSecret, Subscription } from '#endpoints';
import { createHints } from '#outbox';
import {
  createPool,
  openDataSource,
  readSettledUntil,
  withTransaction,
  type Config,
  type Logger,
} from '#runtime';
import type { Keyring } from '#secrets';
import { Consumer, noteKeyUse, withTenant } from '#tenants';
import { ApiContext } from './api-context.js';
import { KeyUse } from './auth/key-use.js';
import { openCreateOnce } from './creation/create-once.js';
import { remember } from './http/remember.js';
import type { InTenant } from './in-tenant.js';
import { Lifecycle } from './lifecycle.js';
import { createMetrics } from './metrics/create-metrics.js';
import { Intake } from './publish/intake.js';

/** Asking takes a transaction of its own, of a millisecond: not one a page. */
const SETTLED_AGE_MS = 500;

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
  const platformPool = createPool({
    url: config.databaseUrl,
    role: 'waybill_operator',
    max: 4,
    applicationName: 'waybill-api-platform',
    statementTimeoutMs: 10_000,
    lockTimeoutMs: 2_000,
    onIdleError,
  });
  const keyUse = new KeyUse(
    (keys) => noteKeyUse(platformPool, keys),
    (error) => logger.warn({ event: 'key_use.failed', message: String(error) }),
  );
  const intake = new Intake(config, onIdleError, (key) => keyUse.note(key));
  const source = await openDataSource({
    url: config.databaseUrl,
    role: 'waybill_app',
    entities: [Consumer, Endpoint, EndpointSecret, Subscription],
    applicationName: 'waybill-api',
    max: 12,
  });
  const inTenant: InTenant = (tenantId, run) => withTenant(source, tenantId, run);
  const hints = createHints(platformPool, (error) =>
    logger.warn({ event: 'hint.failed', message: String(error) }),
  );
  const lifecycle = new Lifecycle();
  const metrics = createMetrics(() => lifecycle.openCount);
  const context = new ApiContext(
    config,
    logger,
    intake,
    inTenant,
    keyring,
    openCreateOnce(inTenant),
    openCreateOnce((_, run) => withTransaction(platformPool, run)),
    remember(SETTLED_AGE_MS, () => readSettledUntil(platformPool)),
    platformPool,
    egressPolicy,
    hints,
    metrics,
    lifecycle,
  );
  return {
    context,
    async close() {
      await Promise.all([hints.settled(), keyUse.settled()]);
      await Promise.all([source.destroy(), intake.close(), platformPool.end()]);
    },
  };
}
