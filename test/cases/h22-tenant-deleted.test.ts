import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { type ApiClient, createClient } from '../support/api-client.js';
import type { RunningApp } from '../support/apps.js';
import { BRISK, expectStatus, openPlatform, type Platform, type ShownEndpoint } from '../support/platform.js';
import type { Receiver } from '../support/receiver.js';
import { waitFor } from '../support/wait-for.js';

const PENDING = 500;
const OPERATOR_KEY = 'operator-key-of-the-tests-0123456789';
const ATTEMPT_TIMEOUT_MS = 2_000;

const OWNED = `
select c.relname::text as name
from pg_class c
join pg_attribute a on a.attrelid = c.oid and a.attname = 'tenant_id'
where c.relnamespace = 'waybill'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
`;

interface MadeTenant {
  readonly id: string;
  readonly first_key: { readonly key: string };
}

describe('a tenant that is deleted', () => {
  let platform: Platform;
  let api: RunningApp;
  let operator: ApiClient;
  let receiver: Receiver;
  let dispatcher: RunningApp;

  beforeAll(async () => {
    platform = await openPlatform();
    api = await platform.bootApi({ WAYBILL_OPERATOR_KEY: OPERATOR_KEY });
    operator = createClient(api.url, OPERATOR_KEY);
    receiver = await platform.startReceiver();
    dispatcher = await bootDispatcher();
  });
  afterAll(() => platform.close());

  const bootDispatcher = () =>
    platform.bootDispatcher({ ...BRISK, WAYBILL_ATTEMPT_TIMEOUT_MS: String(ATTEMPT_TIMEOUT_MS) });

  async function makeTenant(): Promise<{ id: string; client: ApiClient }> {
    const body = { name: 'short-lived', first_key: {} };
    const made = expectStatus(await operator.post<MadeTenant>('/v1/tenants', body), 201);
    return { id: made.id, client: createClient(api.url, made.first_key.key) };
  }

  async function addEndpoint(client: ApiClient, path: string): Promise<ShownEndpoint> {
    const body = { url: `${receiver.url}${path}`, concurrency: 1 };
    return expectStatus(await client.post<ShownEndpoint>('/v1/endpoints', body), 201);
  }

  async function publishMany(client: ApiClient, count: number): Promise<void> {
    const events = Array.from({ length: count }, (_, number) => ({ event_type: 'a.b', payload: { number } }));
    expectStatus(await client.post('/v1/events/batch', { events }), 201);
  }

  /** The tables that hold anything of the tenant, the list of tenants among them. */
  async function tablesWith(tenantId: string): Promise<string[]> {
    const { rows } = await platform.pool.query<{ name: string }>(OWNED);
    const found: string[] = [];
    for (const [name, column] of [...rows.map((row) => [row.name, 'tenant_id']), ['tenants', 'id']]) {
      const { rowCount } = await platform.pool.query(
        `select from waybill.${name} where ${column} = $1 limit 1`,
        [tenantId.slice('tnt_'.length)],
      );
      if (rowCount !== 0) found.push(name!);
    }
    return found;
  }

  const untilErased = (tenantId: string) =>
    waitFor(async () => (await tablesWith(tenantId)).length === 0, { what: 'the tenant’s last row to go' });

  /** One request is in flight, 500 deliveries wait behind it, and the tenant goes. */
  async function deleteInFlight(path: string): Promise<{ id: string; client: ApiClient; seen: number }> {
    const tenant = await makeTenant();
    await addEndpoint(tenant.client, path);
    const seen = receiver.requests.length;
    receiver.hold();
    await publishMany(tenant.client, 1 + PENDING);
    await receiver.waitFor(seen + 1);
    const startedAt = performance.now();
    expect((await operator.delete(`/v1/tenants/${tenant.id}`)).status).toBe(204);
    expect(performance.now() - startedAt).toBeLessThan(1_500);
    expect((await operator.get(`/v1/tenants/${tenant.id}`)).status).toBe(404);
    expect((await tenant.client.publish('a.b', {})).status).toBe(401);
    return { ...tenant, seen };
  }

  it.each([
    ['succeeds', 200],
    ['fails', 500],
    ['says that its endpoint is gone', 410],
  ] as const)(
    '[H22] leaves nothing behind while a request of it is in flight that %s, and is owed nothing more',
    async (_kind, answer) => {
      const { id, seen } = await deleteInFlight(`/${answer}`);
      // The rows go at once: they do not wait for the request.
      await untilErased(id);
      receiver.release(answer);
      await waitFor(async () => (await inFlight()) === 0, { what: 'the request in flight to end' });
      receiver.answer(200);
      await platform.publish({ after: true });
      // Two looks of the dispatcher later.
      await waitFor(async () => (await tablesWith(id)).length === 0, { what: 'nothing to come back' });
      expect(receiver.requests.length).toBe(seen + 1);
      expect(await tablesWith(id)).toEqual([]);
    },
  );

  async function inFlight(): Promise<number> {
    const text = await (await fetch(new URL('/metrics', dispatcher.url))).text();
    return Number(/^waybill_dispatcher_in_flight (\d+)$/m.exec(text)?.[1]);
  }

  it('[H22] is made again under the same name and URL, and the new one gets none of the old', async () => {
    const { id, seen } = await deleteInFlight('/again');
    const successor = await makeTenant();
    expect(successor.id).not.toBe(id);
    const endpoint = await addEndpoint(successor.client, '/again');
    receiver.release(200);
    receiver.answer(200);
    const event = await successor.client.publish<{ deliveries: { id: string; endpoint_id: string }[] }>(
      'a.b',
      {
        of: 'the new one',
      },
    );
    expect(event.body.deliveries.map(({ endpoint_id: to }) => to)).toEqual([endpoint.id]);
    await receiver.waitFor(seen + 2);
    await untilErased(id);
    expect(receiver.requests.slice(seen + 1).map(({ deliveryId }) => deliveryId)).toEqual([
      event.body.deliveries[0]!.id,
    ]);
    expect(await operator.delete(`/v1/tenants/${successor.id}`)).toMatchObject({ status: 204 });
    await untilErased(successor.id);
  });

  it('[H22] is erased to the end though the dispatcher is killed in the middle of it', async () => {
    const { id, client } = await makeTenant();
    await addEndpoint(client, '/killed');
    receiver.answer(200);
    for (let batch = 0; batch < 3; batch += 1) await publishMany(client, 1_000);
    await operator.delete(`/v1/tenants/${id}`);
    const countEvents = async () => {
      const { rows } = await platform.pool.query<{ count: number }>(
        'select count(*)::integer as count from waybill.events where tenant_id = $1',
        [id.slice('tnt_'.length)],
      );
      return rows[0]!.count;
    };
    await waitFor(async () => (await countEvents()) < 3_000, { what: 'the first events to go' });
    await dispatcher.kill();
    const left = await countEvents();
    expect(left).toBeGreaterThan(0);
    dispatcher = await bootDispatcher();
    const second = await bootDispatcher();
    await untilErased(id);
    await second.stop();
  });

  it('[H22] leaves no error in the log, and no loop', () => {
    const loud = platform.apps
      .flatMap((app) => app.logs())
      .filter(({ level, event }) => Number(level) >= 40 && !String(event).startsWith('circuit.'));
    expect(loud).toEqual([]);
  });
});
