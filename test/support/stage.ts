import { parseEgressPolicy } from '#egress';
import { createEndpoint, Endpoint, EndpointSecret, Subscription } from '#endpoints';
import { acceptEvents, createHints } from '#outbox';
import { openDataSource, formatId } from '#runtime';
import { assertEncryptionKey } from '#secrets';
import { withTenant } from '#tenants';
import type { DataSource } from 'typeorm';
import type { Pool } from 'pg';

import { bootDispatcher, type RunningApp } from './apps.js';
import type { Environment } from './child-environment.js';
import { createTestDatabase } from './database.js';
import { testKeyring } from './encryption.js';
import { type PgProxy, startPgProxy } from './pg-proxy.js';
import { type Receiver, startReceiver } from './receiver.js';
import { createTenantWithKey } from './tenant.js';
import { waitFor } from './wait-for.js';

/** One event as it was accepted, with one of the deliveries it is owed. */
export interface PublishedDelivery {
  readonly eventId: string;
  readonly endpointId: string;
  readonly deliveryId: string;
  /** The delivery's id as receivers see it in `webhook-id`. */
  readonly wireId: string;
  readonly payload: string;
}

export interface PublishOptions {
  readonly eventType?: string;
  /** False says nothing to sleeping dispatchers: they find the work by polling. */
  readonly hint?: boolean;
}

/** What a test of the delivery side plays on: a database, a tenant, one receiver with an endpoint, dispatchers. */
export interface Stage {
  readonly databaseUrl: string;
  readonly pool: Pool;
  readonly proxy: PgProxy;
  readonly receiver: Receiver;
  readonly tenantId: string;
  /** The endpoint that leads to `receiver`; it gets every event. */
  readonly endpointId: string;
  readonly secret: string;
  /** Every dispatcher that was booted here. */
  readonly dispatchers: readonly RunningApp[];
  readonly published: readonly PublishedDelivery[];
  addEndpoint(url: string): Promise<{ endpointId: string; secret: string }>;
  /** Accepts events as the API does: one statement, then a hint. A number publishes that many small events. */
  publish(payloads: number | readonly string[], options?: PublishOptions): Promise<PublishedDelivery[]>;
  /** Boots a dispatcher that reaches the database through `proxy`. */
  boot(env?: Environment): Promise<RunningApp>;
  /** How many deliveries are under a claim at this moment. */
  countClaimed(): Promise<number>;
  /** Resolves when PostgreSQL has ended every session of the dispatchers: what the killed ones asked for is over. */
  untilSessionsEnded(): Promise<void>;
}

const DAY_MS = 86_400_000;

const SESSIONS = `
select from pg_stat_activity
where datname = current_database() and application_name like 'waybill-dispatcher%'
`;

/** Settings that let a lease lapse in 3 s: attempts of at most 1 s, four quick retries, polling at 50 ms. */
export const QUICK: Environment = {
  WAYBILL_LEASE_MS: '3000',
  WAYBILL_ATTEMPT_TIMEOUT_MS: '1000',
  WAYBILL_CONNECT_TIMEOUT_MS: '1000',
  WAYBILL_RETRY_SCHEDULE: '0.1,0.1,0.1,0.1',
  WAYBILL_RETRY_JITTER: '0',
  WAYBILL_POLL_MS: '50',
  // Tests of attempts and retries fail five times and more in a row.
  WAYBILL_CIRCUIT_FAILURES: '0',
};

/** The attempts that QUICK allows. */
export const QUICK_ATTEMPTS = 5;

/** Sets up a stage of the test's own; everything on it is killed and dropped when the test is over. */
export async function openStage(onTestFinished: (cleanUp: () => Promise<void>) => void): Promise<Stage> {
  const database = await createTestDatabase();
  const { tenantId } = await createTenantWithKey(database.url);
  const [proxy, receiver] = await Promise.all([startPgProxy(database.url), startReceiver()]);
  const source = await openCatalogue(database.url);
  const hints = createHints(database.pool, () => undefined);
  const dispatchers: RunningApp[] = [];
  const published: PublishedDelivery[] = [];
  onTestFinished(async () => {
    for (const app of dispatchers) await app.kill();
    await hints.settled();
    await Promise.all([proxy.close(), receiver.close(), source.destroy()]);
    await database.drop();
  });

  const policy = parseEgressPolicy({ allow: ['127.0.0.0/8'], deny: [], allowHttp: true });
  const keyring = testKeyring();
  await assertEncryptionKey(database.pool, keyring);
  const addEndpoint = async (url: string): Promise<{ endpointId: string; secret: string }> => {
    const { endpoint: created, secret } = await withTenant(source, tenantId, (tx) =>
      createEndpoint(tx, tenantId, { url }, policy, keyring),
    );
    return { endpointId: created.endpoint.id, secret };
  };
  const { endpointId, secret } = await addEndpoint(receiver.url);

  return {
    databaseUrl: database.url,
    pool: database.pool,
    proxy,
    receiver,
    tenantId,
    endpointId,
    secret,
    dispatchers,
    published,
    addEndpoint,
    async publish(payloads, { eventType = 'order.created', hint = true } = {}) {
      const bodies =
        typeof payloads === 'number'
          ? Array.from({ length: payloads }, (_, index) => `{"order":${published.length + index}}`)
          : payloads;
      const inputs = bodies.map((body) => ({
        tenantId,
        eventType,
        payload: Buffer.from(body),
        contentType: 'application/json',
        metadata: null,
        notBefore: null,
        idempotency: null,
      }));
      const results = await acceptEvents(database.pool, inputs, { maxAgeMs: DAY_MS });
      const deliveries = results.flatMap((result, index) => {
        if (result.kind !== 'accepted') throw new Error(`an event was not accepted: ${result.kind}`);
        return result.event.deliveries.map((delivery) => ({
          eventId: result.event.id,
          endpointId: delivery.endpointId,
          deliveryId: delivery.id,
          wireId: formatId('delivery', delivery.id),
          payload: bodies[index]!,
        }));
      });
      published.push(...deliveries);
      if (hint) hints.notify(deliveries.map((delivery) => ({ tenantId, endpointId: delivery.endpointId })));
      return deliveries;
    },
    async boot(env = QUICK) {
      const app = await bootDispatcher({ databaseUrl: proxy.url, env });
      dispatchers.push(app);
      return app;
    },
    async untilSessionsEnded() {
      await waitFor(async () => (await database.pool.query(SESSIONS)).rowCount === 0, {
        what: 'the end of the dispatchers’ sessions',
      });
    },
    async countClaimed() {
      const { rows } = await database.pool.query<{ claimed: number }>(
        'select count(*)::integer as claimed from waybill.delivery_queue where lease_until is not null',
      );
      return rows[0]!.claimed;
    },
  };
}

function openCatalogue(url: string): Promise<DataSource> {
  return openDataSource({
    url,
    role: 'waybill_app',
    entities: [Endpoint, EndpointSecret, Subscription],
    applicationName: 'waybill-test',
    max: 1,
  });
}
