import { beforeAll, describe, expect, it } from 'vitest';

import type { ApiClient } from '../support/api-client.js';
import { ApiStage, type CreatedEndpoint } from '../support/api-stage.js';
import { expectProblem } from '../support/expect-problem.js';
import { createTenantWithKey } from '../support/tenant.js';

interface Endpoint extends CreatedEndpoint {
  readonly consumer_id: string | null;
}

const NOBODY = `con_${'0'.repeat(32)}`;
const stage = new ApiStage();
/** Of another tenant. */
let stranger: ApiClient;

beforeAll(async () => {
  const { key } = await createTenantWithKey(stage.database.url, { name: 'B' });
  stranger = stage.clientOf(stage.api, key);
});

async function make(uid: string, client = stage.client): Promise<{ readonly id: string }> {
  const { status, body } = await client.post<{ id: string }>('/v1/consumers', { uid });
  expect(status).toBe(201);
  return body;
}

describe('an endpoint of a consumer', () => {
  it('says whose it is, is listed under it, and stays so', async () => {
    const consumer = await make('owner');
    const tenantLevel = (await stage.addEndpoint()) as Endpoint;
    expect(tenantLevel.consumer_id).toBeNull();
    const byUid = (await stage.addEndpoint({ consumer: 'owner' })) as Endpoint;
    const byId = (await stage.addEndpoint({ consumer: consumer.id })) as Endpoint;
    expect([byUid.consumer_id, byId.consumer_id]).toEqual([consumer.id, consumer.id]);
    for (const filter of ['owner', consumer.id]) {
      const { body } = await stage.client.get<{ data: Endpoint[] }>(`/v1/endpoints?consumer=${filter}`);
      expect(body.data.map(({ id }) => id)).toEqual([byId.id, byUid.id]);
      const page = await stage.client.get<{ next_cursor: string }>(
        `/v1/endpoints?consumer=${filter}&limit=1`,
      );
      const rest = await stage.client.get<{ data: Endpoint[] }>(
        `/v1/endpoints?consumer=${filter}&cursor=${page.body.next_cursor}`,
      );
      expect(rest.body.data.map(({ id }) => id)).toEqual([byUid.id]);
    }
    for (const to of [null, 'owner', NOBODY])
      expectProblem(
        await stage.client.patch(`/v1/endpoints/${byUid.id}`, { consumer: to }),
        422,
        'unknown_field',
      );
    const changed = await stage.client.patch(`/v1/endpoints/${byUid.id}`, { event_types: ['a.*'] });
    expect(changed.body).toMatchObject({ consumer_id: consumer.id, event_types: ['a.*'] });
  });

  it('takes no operator events: those are for the tenant', async () => {
    await make('listener');
    const event_types = ['a.b', 'waybill.delivery.dead'];
    const body = { url: stage.receiver.url, consumer: 'listener', event_types };
    const refused = expectProblem(await stage.client.post('/v1/endpoints', body), 422, 'validation_failed');
    expect(refused.details?.[0]?.field).toBe('event_types[1]');
    const { id } = await stage.addEndpoint({ consumer: 'listener' });
    expectProblem(await stage.client.patch(`/v1/endpoints/${id}`, { event_types }), 422, 'validation_failed');
    expect((await stage.client.get(`/v1/endpoints/${id}`)).body).toMatchObject({ event_types: ['*'] });
  });

  it("is never another tenant's: its consumers answer as unknown ones", async () => {
    const foreign = await make('only of B', stranger);
    for (const consumer of ['only of B', foreign.id]) {
      const body = { url: stage.receiver.url, consumer };
      expectProblem(await stage.client.post('/v1/endpoints', body), 404, 'consumer_not_found');
      expectProblem(await stage.client.publish('a.b', {}, { consumer }), 404, 'consumer_not_found');
    }
  });
});

it('what happens to an endpoint of a consumer is told to the tenant, and only there', async () => {
  await make('failing');
  const url = `${stage.receiver.url}/customer`;
  const failing = await stage.addEndpoint({ consumer: 'failing', url });
  await stage.addEndpoint({ url: `${stage.receiver.url}/tenant`, event_types: ['waybill.delivery.dead'] });
  // As no client can: the name in a consumer's subscription matches nothing.
  await stage.pool.query(
    `insert into waybill.subscriptions (tenant_id, event_type, endpoint_id, consumer_id)
     select tenant_id, 'waybill.delivery.dead', id, consumer_id from waybill.endpoints where id = $1`,
    [failing.id.slice('ep_'.length)],
  );
  stage.receiver.answer(({ path }) => (path === '/customer' ? 500 : 200));
  await stage.bootDispatcher();
  const published = await stage.client.publish<{ id: string }>('a.b', {}, { consumer: 'failing' });
  const told = (await stage.receiver.waitFor((all) => all.some(({ path }) => path === '/tenant')))
    .filter(({ path }) => path === '/tenant')
    .map(({ body }): unknown => JSON.parse(body.toString()));
  expect(told).toMatchObject([
    { type: 'waybill.delivery.dead', endpoint_id: failing.id, event_id: published.body.id },
  ]);
  const { rows } = await stage.pool.query(
    `select p.consumer_id from waybill.deliveries d
     join waybill.events e on e.tenant_id = d.tenant_id and e.id = d.event_id
     join waybill.endpoints p on p.tenant_id = d.tenant_id and p.id = d.endpoint_id
     where e.event_type = 'waybill.delivery.dead'`,
  );
  expect(rows).toEqual([{ consumer_id: null }]);
});
