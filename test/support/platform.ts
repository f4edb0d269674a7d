import { setTimeout as sleep } from 'node:timers/promises';

import type { Pool } from 'pg';
import { expect } from 'vitest';

import type { ApiClient, ApiResponse } from './api-client.js';
import { bootApi, bootDispatcher, type RunningApp } from './apps.js';
import type { Environment } from './child-environment.js';
import { createTestDatabase, type TestDatabase } from './database.js';
import { type Receiver, startReceiver } from './receiver.js';
import { createTenantWithKey, type TestTenant } from './tenant.js';
import { waitFor } from './wait-for.js';

/** Attempts of at most 1 s, leases of 4 s, five attempts 0.1 s apart, polling at 50 ms. */
export const BRISK: Environment = {
  WAYBILL_LEASE_MS: '4000',
  WAYBILL_ATTEMPT_TIMEOUT_MS: '1000',
  WAYBILL_CONNECT_TIMEOUT_MS: '1000',
  WAYBILL_RETRY_SCHEDULE: '0.1,0.1,0.1,0.1',
  WAYBILL_RETRY_JITTER: '0',
  WAYBILL_POLL_MS: '50',
  // Tests of attempts and retries fail five times and more in a row.
  WAYBILL_CIRCUIT_FAILURES: '0',
};

/** The attempts that BRISK allows. */
export const BRISK_ATTEMPTS = 5;

/** A delivery as GET /v1/deliveries/{id} shows it. */
export interface ShownDelivery {
  readonly id: string;
  readonly event_id: string;
  readonly endpoint_id: string;
  readonly state: string;
  readonly attempt_count: number;
  readonly next_attempt_at: string | null;
  readonly attempts: readonly ShownAttempt[];
}

/** An attempt as it stands in a shown delivery. */
export interface ShownAttempt {
  readonly number: number;
  readonly outcome: string;
  readonly status_code: number | null;
  readonly error_kind: string | null;
  readonly error: string | null;
  readonly response_body: string | null;
  readonly started_at: string;
  readonly duration_ms: number;
}

/** An event as POST /v1/events answers it. */
export interface ShownEvent {
  readonly id: string;
  readonly deliveries: readonly { readonly id: string; readonly endpoint_id: string }[];
}

/** An endpoint as POST /v1/endpoints answers it. */
export interface ShownEndpoint {
  readonly id: string;
  readonly secret: string;
}

/** A whole Waybill for a test: one database, one tenant, and whichever processes the test boots. */
export interface Platform {
  readonly databaseUrl: string;
  /** Past any proxy, for what the test looks up and plants. */
  readonly pool: Pool;
  readonly tenant: TestTenant;
  /** The tenant's client for the api that was booted last. */
  readonly client: ApiClient;
  readonly apps: readonly RunningApp[];
  readonly receivers: readonly Receiver[];
  bootApi(env?: Environment): Promise<RunningApp>;
  bootDispatcher(env?: Environment): Promise<RunningApp>;
  startReceiver(): Promise<Receiver>;
  /** Registers an endpoint by the API; it takes every event unless `fields` say otherwise. */
  addEndpoint(url: string, fields?: object): Promise<ShownEndpoint>;
  /** Publishes by the API and expects a 201. */
  publish(payload: object | string, eventType?: string): Promise<ShownEvent>;
  readDelivery(id: string): Promise<ShownDelivery>;
  /** Waits until a delivery is shown in that state, at its current attempt number or a later one. */
  untilState(id: string, state: string, timeoutMs?: number): Promise<ShownDelivery>;
  /** Ends the processes and receivers, and drops the database. */
  close(): Promise<void>;
}

export interface PlatformOptions {
  /** A database that is there already: a private server's. Without it one is copied, and dropped at the end. */
  readonly database?: { readonly url: string; readonly pool: Pool };
  /** By which way the apps reach the database; straight if not told. */
  readonly appDatabaseUrl?: string;
}

/** Opens a platform without any process; a test boots what it needs. */
export async function openPlatform(options: PlatformOptions = {}): Promise<Platform> {
  const copied: TestDatabase | null = options.database === undefined ? await createTestDatabase() : null;
  const { url, pool } = options.database ?? copied!;
  const appDatabaseUrl = options.appDatabaseUrl ?? url;
  const tenant = await createTenantWithKey(url);
  const apps: RunningApp[] = [];
  const receivers: Receiver[] = [];
  let client: ApiClient | undefined;
  const api = (): ApiClient => {
    if (client === undefined) throw new Error('no api was booted yet');
    return client;
  };

  const platform: Platform = {
    databaseUrl: appDatabaseUrl,
    pool,
    tenant,
    apps,
    receivers,
    get client() {
      return api();
    },
    async bootApi(env = {}) {
      const app = await bootApi({ databaseUrl: appDatabaseUrl, env });
      apps.push(app);
      client = tenant.clientOf(app.url);
      return app;
    },
    async bootDispatcher(env = BRISK) {
      const app = await bootDispatcher({ databaseUrl: appDatabaseUrl, env });
      apps.push(app);
      return app;
    },
    async startReceiver() {
      const receiver = await startReceiver();
      receivers.push(receiver);
      return receiver;
    },
    async addEndpoint(endpointUrl, fields = {}) {
      const answer = await api().post<ShownEndpoint>('/v1/endpoints', { url: endpointUrl, ...fields });
      return expectStatus(answer, 201);
    },
    async publish(payload, eventType = 'order.created') {
      return expectStatus(await api().publish<ShownEvent>(eventType, payload), 201);
    },
    async readDelivery(id) {
      return expectStatus(await api().get<ShownDelivery>(`/v1/deliveries/${id}`), 200);
    },
    untilState(id, state, timeoutMs) {
      return waitFor(
        async () => {
          const shown = await platform.readDelivery(id);
          return shown.state === state && shown;
        },
        { what: `${id} to be ${state}`, ...(timeoutMs === undefined ? {} : { timeoutMs }) },
      );
    },
    async close() {
      for (const app of apps) await app.kill();
      for (const receiver of receivers) await receiver.close();
      await copied?.drop();
    },
  };
  return platform;
}

/** The body of an answer that must have this status; otherwise the failure shows the whole answer. */
export function expectStatus<Body>(answer: ApiResponse<Body>, status: number): Body {
  expect(answer.status === status ? '' : `${answer.status} ${answer.text}`).toBe('');
  return answer.body;
}

/** Asks a health route until it gives this status. */
export async function untilHealth(
  app: RunningApp,
  path: '/readyz' | '/healthz',
  status: number,
  timeoutMs = 20_000,
): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    const last = await healthOf(app, path);
    if (last === status) return;
    if (performance.now() > deadline)
      throw new Error(
        `gave up waiting for ${path} to answer ${status}; last ${last}; its log:\n${app.logText()}`,
      );
    await sleep(50);
  }
}

/** The status that a health route gives now. */
export async function healthOf(app: RunningApp, path: '/readyz' | '/healthz'): Promise<number> {
  const response = await fetch(new URL(path, app.url));
  await response.arrayBuffer();
  return response.status;
}
