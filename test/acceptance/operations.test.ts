import { readFile } from 'node:fs/promises';

import { afterEach, describe, expect, it } from 'vitest';

import type { ApiResponse } from '../support/api-client.js';
import { BootError, bootApi, bootDispatcher, runCli, type RunningApp } from '../support/apps.js';
import { expectDrained, expectNoneDied } from '../support/expect-drained.js';
import { type PgProxy, startPgProxy } from '../support/pg-proxy.js';
import {
  BRISK,
  BRISK_ATTEMPTS,
  expectStatus,
  healthOf,
  openPlatform,
  type Platform,
  untilHealth,
} from '../support/platform.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { waitFor } from '../support/wait-for.js';

let database: TestDatabase;
let platform: Platform;
let proxy: PgProxy;
afterEach(async () => {
  await platform.close();
  await proxy.close();
  await database.drop();
});

/** A platform whose apps reach the database by way of a proxy. */
async function open(): Promise<void> {
  database = await createTestDatabase();
  proxy = await startPgProxy(database.url);
  platform = await openPlatform({ database, appDatabaseUrl: proxy.url });
}

async function metricsOf(app: RunningApp, authorization?: string): Promise<{ status: number; text: string }> {
  const headers = new Headers(authorization === undefined ? [] : [['authorization', authorization]]);
  const response = await fetch(new URL('/metrics', app.url), { headers });
  return { status: response.status, text: await response.text() };
}

/** Each is a problem 503 that says when to come again, and nothing about the database. */
async function expectIntakeRefused(calls: Promise<ApiResponse<Record<string, unknown>>>[]): Promise<void> {
  for (const answer of await Promise.all(calls)) {
    expect([answer.status, answer.body['code']]).toEqual([503, 'database_unavailable']);
    expect(answer.headers['content-type']).toBe('application/problem+json');
    expect(Number(answer.headers['retry-after'])).toBeGreaterThanOrEqual(1);
    expect(answer.text).not.toMatch(/ECONN|127\.0\.0\.1|postgres/);
  }
}

/** The value of one series; undefined when it is not exposed. */
function series(text: string, name: string): number | undefined {
  const line = text.split('\n').find((found) => found.startsWith(`${name} `));
  return line === undefined ? undefined : Number(line.slice(name.length + 1));
}

describe('a database that is away', () => {
  it.each(['refused', 'silent'] as const)(
    '[row 94] [F1] (%s) leaves both apps alive, not ready and accepting nothing, and they come back by themselves',
    async (how) => {
      await open();
      const receiver = await platform.startReceiver();
      const api = await platform.bootApi();
      const dispatcher = await platform.bootDispatcher();
      await platform.addEndpoint(receiver.url);
      await platform.publish({ order: 1 });
      await receiver.waitFor(1);

      if (how === 'refused') {
        await proxy.refuse(true);
        proxy.cutAll();
      } else {
        proxy.blackhole(true);
      }
      await untilHealth(api, '/readyz', 503);
      await untilHealth(dispatcher, '/readyz', 503);
      expect(await Promise.all([healthOf(api, '/healthz'), healthOf(dispatcher, '/healthz')])).toEqual([
        200, 200,
      ]);
      if (how === 'refused') {
        await expectIntakeRefused([
          platform.client.publish('order.created', { order: 2 }),
          platform.client.publish('order.created', { order: 3 }, { idempotencyKey: 'a'.repeat(20) }),
          platform.client.post('/v1/events/batch', { events: [{ event_type: 'order.created', payload: 4 }] }),
          platform.client.post('/v1/endpoints', { url: receiver.url }),
          platform.client.get('/v1/deliveries'),
        ]);
        await proxy.refuse(false);
      } else {
        proxy.blackhole(false);
      }

      await untilHealth(api, '/readyz', 200);
      await untilHealth(dispatcher, '/readyz', 200);
      const { rows } = await database.pool.query('select event_type from waybill.events');
      expect(rows).toHaveLength(1);
      await platform.publish({ order: 5 });
      await receiver.waitFor(2, 10_000);
      await expectDrained(platform, { attemptLimit: BRISK_ATTEMPTS });
      expect(receiver.requests.map(({ body }) => body.toString('utf8'))).toEqual([
        '{"order":1}',
        '{"order":5}',
      ]);
    },
  );
});

describe('metrics', () => {
  it('[row 96] ask for their token on both processes and tell the truth about the queue', async () => {
    await open();
    const token = { WAYBILL_METRICS_TOKEN: 'tok-metrics' };
    const receiver = await platform.startReceiver();
    const api = await platform.bootApi(token);
    const dispatcher = await platform.bootDispatcher({
      ...BRISK,
      ...token,
      WAYBILL_ATTEMPT_TIMEOUT_MS: '20000',
      WAYBILL_LEASE_MS: '40000',
      WAYBILL_RETRY_SCHEDULE: '600',
    });
    for (const app of [api, dispatcher]) {
      for (const wrong of [undefined, 'Bearer', 'Bearer tok-metric', 'Bearer tok-metrics2', 'tok-metrics']) {
        expect(await metricsOf(app, wrong)).toMatchObject({ status: 401 });
      }
      expect((await metricsOf(app, 'Bearer tok-metrics')).status).toBe(200);
      // Health is for machines without keys.
      expect(await healthOf(app, '/readyz')).toBe(200);
    }

    // Four kinds at once: one fails and waits, two are held open, one endpoint is unknown to nobody, one is dead.
    const failing = await platform.startReceiver();
    failing.answer(500);
    await platform.addEndpoint(failing.url, { event_types: ['order.failed'] });
    await platform.addEndpoint(receiver.url, { event_types: ['order.held'] });
    const failed = await platform.publish({ order: 1 }, 'order.failed');
    const dead = await platform.publish({ order: 2 }, 'order.failed');
    await platform.untilState(failed.deliveries[0]!.id, 'failed');
    await platform.untilState(dead.deliveries[0]!.id, 'failed');
    await database.pool.query(
      `update waybill.delivery_queue set due_at = now() where delivery_id = $1::uuid`,
      [dead.deliveries[0]!.id.slice('dlv_'.length)],
    );
    await platform.untilState(dead.deliveries[0]!.id, 'dead');
    receiver.hold();
    await platform.publish({ order: 3 }, 'order.held');
    await platform.publish({ order: 4 }, 'order.held');
    await platform.publish({ order: 5 }, 'order.unwanted');
    await receiver.waitFor(2);
    // Due in an hour: pending.
    expectStatus(
      await platform.client.publish(
        'order.held',
        { order: 6 },
        {
          notBefore: new Date(Date.now() + 3_600_000).toISOString(),
        },
      ),
      201,
    );
    // A repeat of a key is no second event.
    for (const status of [201, 201]) {
      const answer = await platform.client.publish(
        'order.unwanted',
        { order: 7 },
        {
          idempotencyKey: 'repeated-key-of-a-test',
        },
      );
      expect(answer.status).toBe(status);
    }

    const truth = { pending: 1, failed: 1, in_progress: 2, dead: 1 };
    // The queue is measured at most every five seconds.
    const text = await waitFor(
      async () => {
        const scraped = (await metricsOf(api, 'Bearer tok-metrics')).text;
        return series(scraped, 'waybill_deliveries{state="pending"}') === 1 && scraped;
      },
      { what: 'a fresh measure of the queue' },
    );
    for (const [state, count] of Object.entries(truth)) {
      expect([state, series(text, `waybill_deliveries{state="${state}"}`)]).toEqual([state, count]);
    }
    expect(series(text, 'waybill_events_accepted_total')).toBe(7);
    expect(series(text, 'waybill_in_flight')).toBe(2);
    expect(series(text, 'waybill_queue_due')).toBe(0);
    expect(series(text, 'waybill_database_up')).toBe(1);
    expect(series(text, 'waybill_partition_days_ahead')).toBe(15);
    const sent = (await metricsOf(dispatcher, 'Bearer tok-metrics')).text;
    expect(series(sent, 'waybill_dispatcher_in_flight')).toBe(2);
    expect(series(sent, 'waybill_attempts_total{outcome="failed"}')).toBe(3);

    // What the reference names is there, and what is there is named.
    const reference = await readFile(new URL('../../docs/reference/metrics.md', import.meta.url), 'utf8');
    for (const [process, exposed] of [
      ['api', text],
      ['dispatcher', sent],
    ] as const) {
      const documented = [...reference.matchAll(/^\| `(waybill_\w+)[^|]*\| (\w+) /gm)]
        .filter(([, , where]) => where === process)
        .map(([, name]) => name!);
      const ofOurs = [...exposed.matchAll(/^# TYPE (waybill_\w+)/gm)]
        .map(([, name]) => name!)
        .filter((name) => !/^waybill_(process|nodejs)_/.test(name));
      expect(ofOurs.toSorted()).toEqual(documented.toSorted());
    }
    receiver.release(200);
    await database.pool.query('delete from waybill.delivery_queue where lease_until is null');
    expectNoneDied(platform);
  });
});

describe('the two processes', () => {
  it('[row 97] work alone: the api accepts without a dispatcher, and a dispatcher delivers without an api', async () => {
    await open();
    const receiver = await platform.startReceiver();
    const api = await platform.bootApi();
    await platform.addEndpoint(receiver.url);
    const events = await Promise.all([1, 2, 3, 4, 5].map((order) => platform.publish({ order })));
    expect(await healthOf(api, '/readyz')).toBe(200);
    expect(await platform.readDelivery(events[0]!.deliveries[0]!.id)).toMatchObject({
      state: 'pending',
      attempt_count: 0,
    });
    expect(receiver.requests).toHaveLength(0);
    expect(await api.kill()).toEqual({ code: null, signal: 'SIGKILL' });
    const dispatcher = await platform.bootDispatcher();
    await receiver.waitFor(5);
    expect(await healthOf(dispatcher, '/readyz')).toBe(200);
    await expectDrained(platform, { attemptLimit: BRISK_ATTEMPTS });
    expect(receiver.uniqueDeliveries().toSorted()).toEqual(
      events.map(({ deliveries }) => deliveries[0]!.id).toSorted(),
    );
    expect(await dispatcher.stop()).toEqual({ code: 0, signal: null });
  });
});

describe('a setting that is misspelt', () => {
  it('is named in the log of either process with the one that was meant, and by the doctor', async () => {
    await open();
    const { databaseUrl } = platform;
    const env = { WAYBILL_CONCURENCY: '1', WAYBILL_SERVICE_HOST: '10.0.0.1' };
    for (const app of [await platform.bootApi(env), await platform.bootDispatcher(env)]) {
      const warned = app.logs().filter((line) => line['event'] === 'setting.unknown');
      expect(warned).toEqual([
        expect.objectContaining({ variable: 'WAYBILL_CONCURENCY', did_you_mean: 'WAYBILL_CONCURRENCY' }),
      ]);
    }
    const { stdout } = await runCli(['doctor'], { DATABASE_URL: databaseUrl, ...env });
    expect(stdout).toContain('WAYBILL_CONCURENCY is no setting; did you mean WAYBILL_CONCURRENCY?');
  });
});

/** What an app said before it ended with exit code 1. */
async function refused(boot: Promise<unknown>): Promise<string> {
  const error: unknown = await boot.catch((reason: unknown) => reason);
  if (!(error instanceof BootError)) throw new Error('it started');
  expect(error.code).toBe(1);
  return error.output;
}

describe('the password in DATABASE_URL', () => {
  it('[I11] is in nothing that an app or a command says when the database refuses it', async () => {
    await open();
    const password = 'pa55-leaked';
    const proxied = (): string => {
      const url = new URL(proxy.url);
      url.password = password;
      return url.href;
    };
    await proxy.refuse(true);
    const urls = [proxied(), `postgresql://user:${password}%@127.0.0.1:1/db`];
    const said = await Promise.all(
      urls.map(async (databaseUrl) => {
        const env = { DATABASE_URL: databaseUrl };
        const [api, dispatcher, ...commands] = await Promise.all([
          refused(bootApi({ databaseUrl, env: { WAYBILL_LOG_LEVEL: 'trace' } })),
          refused(bootDispatcher({ databaseUrl, env: { WAYBILL_LOG_LEVEL: 'trace' } })),
          runCli(['doctor'], env),
          runCli(['migrate', '--json'], env),
        ]);
        expect(commands.map(({ code }) => code)).toEqual([1, 1]);
        return [api, dispatcher, ...commands.map(({ stdout, stderr }) => stdout + stderr)];
      }),
    );
    for (const output of said.flat()) {
      expect(output).not.toBe('');
      expect(output).not.toContain(password);
    }
  });
});
