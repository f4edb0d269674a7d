import type { Pool } from 'pg';
import { afterAll, beforeAll, expect } from 'vitest';

import { type ApiClient, createClient } from './api-client.js';
import { bootApi, bootDispatcher, type RunningApp } from './apps.js';
import type { Environment } from './child-environment.js';
import { createTestDatabase, type TestDatabase } from './database.js';
import { type PgProxy, startPgProxy } from './pg-proxy.js';
import { type Receiver, startReceiver } from './receiver.js';
import { createTenantWithKey, type TestTenant } from './tenant.js';

/** The piece of accept-events by which the proxy knows it: the statement that stores an event and all it owes. */
export const ACCEPT = 'insert into waybill.idempotency_keys';

/** Retries within a second: four attempts at most. */
export const QUICK_RETRIES: Environment = {
  WAYBILL_RETRY_SCHEDULE: '0.05,0.05,0.05',
  WAYBILL_CIRCUIT_FAILURES: '0',
  WAYBILL_RETRY_JITTER: '0',
  WAYBILL_POLL_MS: '100',
};

/** The attempts that QUICK_RETRIES allows. */
export const QUICK_ATTEMPTS = 4;

/** An endpoint as the answer to its creation shows it, secret included. */
export interface CreatedEndpoint {
  readonly id: string;
  readonly secret: string;
  readonly event_types: readonly string[];
}

/**
 * What a test file of the HTTP API plays on: a database behind a proxy, one tenant, a receiver, and as many api
 * processes and dispatchers as it boots. All of it goes when the file is done.
 */
export class ApiStage {
  database!: TestDatabase;
  proxy!: PgProxy;
  receiver!: Receiver;
  tenant!: TestTenant;
  /** The first api and the tenant's client for it. */
  api!: RunningApp;
  client!: ApiClient;
  readonly apps: RunningApp[] = [];
  private readonly clients: ApiClient[] = [];

  constructor(options: { readonly env?: Environment; readonly boot?: boolean } = {}) {
    beforeAll(async () => {
      this.database = await createTestDatabase();
      [this.proxy, this.receiver, this.tenant] = await Promise.all([
        startPgProxy(this.database.url),
        startReceiver(),
        createTenantWithKey(this.database.url),
      ]);
      if (options.boot === false) return;
      this.api = await this.bootApi(options.env);
      this.client = this.clientOf(this.api);
    });
    afterAll(async () => {
      for (const client of this.clients) client.close();
      await Promise.all(this.apps.map((app) => app.kill()));
      await Promise.all([this.proxy.close(), this.receiver.close()]);
      await this.database.drop();
    });
  }

  get pool(): Pool {
    return this.database.pool;
  }

  /** Boots an api that reaches the database through the proxy. */
  async bootApi(env?: Environment): Promise<RunningApp> {
    return this.add(await bootApi({ databaseUrl: this.proxy.url, env }));
  }

  /** Boots a dispatcher on the database itself, or wherever it is told. */
  async bootDispatcher(
    env: Environment = QUICK_RETRIES,
    databaseUrl = this.database.url,
  ): Promise<RunningApp> {
    return this.add(await bootDispatcher({ databaseUrl, env }));
  }

  clientOf(app: RunningApp, key = this.tenant.key): ApiClient {
    const client = createClient(app.url, key, { keepAlive: true });
    this.clients.push(client);
    return client;
  }

  /** Creates an endpoint that leads to the receiver, unless told otherwise. */
  async addEndpoint(body: object = {}, client = this.client): Promise<CreatedEndpoint> {
    const created = await client.post<CreatedEndpoint>('/v1/endpoints', {
      url: `${this.receiver.url}/hook`,
      ...body,
    });
    expect(created).toMatchObject({ status: 201 });
    return created.body;
  }

  private add(app: RunningApp): RunningApp {
    this.apps.push(app);
    return app;
  }
}
