import { beforeAll, describe, expect, it } from 'vitest';

import type { ApiClient, ApiResponse } from '../support/api-client.js';
import { ApiStage, QUICK_RETRIES } from '../support/api-stage.js';
import type { RunningApp } from '../support/apps.js';
import { BootError, bootApi } from '../support/apps.js';
import { expectAnyProblem, expectProblem } from '../support/expect-problem.js';
import { expectStatus, type ShownDelivery, type ShownEvent } from '../support/platform.js';
import { rowCounts } from '../support/row-counts.js';
import { createTenantWithKey } from '../support/tenant.js';
import { waitFor } from '../support/wait-for.js';

interface ShownTenant {
  readonly id: string;
  readonly name: string;
  readonly status: string;
  readonly version: number;
  readonly suspended_at: string | null;
}
interface MadeTenant extends ShownTenant {
  readonly first_key: { readonly id: string; readonly key: string; readonly scopes: string[] } | null;
}
interface Page {
  readonly data: readonly ShownTenant[];
  readonly next_cursor: string | null;
}

const FIRST = 'operator-key-of-the-tests-0123456789';
const SECOND = 'another-operator-key-while-they-change';
const NOBODY = `tnt_${'0'.repeat(32)}`;

const stage = new ApiStage({ env: { WAYBILL_OPERATOR_KEY: `${FIRST}, ${SECOND}` } });
let operator: ApiClient;

beforeAll(() => {
  operator = stage.clientOf(stage.api, FIRST);
});

async function make(body: object = {}): Promise<MadeTenant> {
  return expectStatus(await operator.post<MadeTenant>('/v1/tenants', { name: 'acme', ...body }), 201);
}

async function makeWithKey(): Promise<{ tenant: MadeTenant; client: ApiClient }> {
  const tenant = await make({ first_key: {} });
  return { tenant, client: stage.clientOf(stage.api, tenant.first_key!.key) };
}

const read = async (id: string) => expectStatus(await operator.get<ShownTenant>(`/v1/tenants/${id}`), 200);

const ROUTES: readonly (readonly [string, string])[] = [
  ['POST', '/v1/tenants'],
  ['GET', '/v1/tenants'],
  ['GET', `/v1/tenants/${NOBODY}`],
  ['PATCH', `/v1/tenants/${NOBODY}`],
  ['DELETE', `/v1/tenants/${NOBODY}`],
  ['POST', `/v1/tenants/${NOBODY}/suspend`],
  ['POST', `/v1/tenants/${NOBODY}/resume`],
];

function ask(client: ApiClient, [method, path]: readonly [string, string]): Promise<ApiResponse<unknown>> {
  if (method === 'GET') return client.get(path);
  if (method === 'DELETE') return client.delete(path);
  return method === 'PATCH' ? client.patch(path, { name: 'x' }) : client.post(path, {});
}

describe('[row 96] the routes of the operator', () => {
  let without: RunningApp;
  beforeAll(async () => {
    without = await stage.bootApi();
  });

  it.each(ROUTES)('%s %s is no route where no operator key is set', async (method, path) => {
    const comparable = ({ status, headers, text }: ApiResponse<unknown>) => {
      const { date: _date, 'x-request-id': requestId, ...rest } = headers;
      return { status, headers: rest, text: text.replace(String(requestId), 'REQUEST') };
    };
    for (const key of [FIRST, stage.tenant.key, 'x']) {
      const client = stage.clientOf(without, key);
      const answer = await ask(client, [method, path]);
      expectProblem(answer, 404, 'route_not_found');
      const unknown = await ask(client, [method, path.replace('tenants', 'tenantz')]);
      expect(comparable(answer)).toEqual(comparable(unknown));
    }
  });

  it.each(ROUTES)('%s %s asks for the operator’s key, and takes no tenant’s', async (method, path) => {
    const before = await rowCounts(stage.pool);
    const nobody = await ask(stage.clientOf(stage.api, ''), [method, path]);
    expectProblem(nobody, 401, 'invalid_operator_key');
    const headerless = await fetch(new URL(path, stage.api.url), { method });
    expect(headerless.status).toBe(401);
    expect(headerless.headers.get('www-authenticate')).toBe('Bearer');
    expect(await headerless.json()).toMatchObject({ code: 'authentication_required' });
    for (const key of [
      stage.tenant.key,
      FIRST.slice(0, -1),
      `${FIRST}x`,
      `${FIRST}, ${SECOND}`,
      'é'.repeat(40),
    ]) {
      const client = stage.clientOf(stage.api, Buffer.from(key).toString('latin1'));
      expectProblem(await ask(client, [method, path]), 401, 'invalid_operator_key');
    }
    expect(await rowCounts(stage.pool)).toEqual(before);
  });

  it('take each of several keys, which are no keys of a tenant', async () => {
    for (const key of [FIRST, SECOND]) {
      const client = stage.clientOf(stage.api, key);
      expect((await client.get('/v1/tenants')).status).toBe(200);
      for (const path of ['/v1/events', '/v1/keys', '/v1/endpoints'])
        expectProblem(await client.get(path), 401, 'invalid_api_key');
      expectProblem(await client.publish('a.b', {}), 401, 'invalid_api_key');
    }
    expect(stage.api.logText()).not.toContain(FIRST);
  });

  it.each([
    ['short', 'x'.repeat(31)],
    ['empty among others', `${FIRST},`],
    ['of two words', `two words ${'x'.repeat(32)}`],
    ['beyond ASCII', 'é'.repeat(32)],
    ['like a tenant’s', `wb_live_${'x'.repeat(32)}`],
  ])('stop the start by a key that is %s, without telling it', async (_what, key) => {
    const error: unknown = await bootApi({
      databaseUrl: stage.database.url,
      env: { WAYBILL_OPERATOR_KEY: key },
    }).catch((reason: unknown) => reason);
    if (!(error instanceof BootError)) throw new Error('it started');
    expect(error.output).toContain('WAYBILL_OPERATOR_KEY must');
    expect(error.output).not.toContain(key);
  });
});

describe('a tenant', () => {
  it('is made, with a first key if that is asked for, which is shown this once', async () => {
    const answer = await operator.post<MadeTenant>('/v1/tenants', { name: 'acme' });
    const plain = expectStatus(answer, 201);
    expect(answer.headers).toMatchObject({ location: `/v1/tenants/${plain.id}`, etag: '"1"' });
    expect(plain).toMatchObject({ name: 'acme', status: 'active', suspended_at: null, first_key: null });
    expect(await read(plain.id)).toEqual(
      Object.fromEntries(Object.entries(plain).filter(([name]) => name !== 'first_key')),
    );
    const { tenant, client } = await makeWithKey();
    expect(tenant.first_key).toMatchObject({ name: 'first key', scopes: ['admin'] });
    expect((await client.get('/v1/events')).status).toBe(200);
    const narrow = await make({ first_key: { name: 'producer', scopes: ['events:write'] } });
    expect(narrow.first_key).toMatchObject({ name: 'producer', scopes: ['events:write'] });
    expect((await operator.get(`/v1/tenants/${tenant.id}`)).text).not.toContain('wb_live');
    expect(stage.api.logText()).not.toContain(tenant.first_key!.key);
  });

  it('is renamed at the version that was read', async () => {
    const { id } = await make();
    const path = `/v1/tenants/${id}`;
    const renamed = await operator.patch(path, { name: 'zeta' }, { 'if-match': '"1"' });
    expect(renamed).toMatchObject({ status: 200, headers: { etag: '"2"' }, body: { name: 'zeta' } });
    expectProblem(await operator.patch(path, { name: 'x' }, { 'if-match': '"1"' }), 412, 'stale_version');
    expect((await operator.patch(path, { name: 'eta' })).status).toBe(200);
    expect(await read(id)).toMatchObject({ name: 'eta', version: 3 });
  });

  it.each<[string, object | string, string]>([
    ['no name', {}, 'validation_failed'],
    ['an empty name', { name: '' }, 'validation_failed'],
    ['a name of 10 kB', { name: 'x'.repeat(10_000) }, 'validation_failed'],
    ['NUL', { name: 'a\u0000' }, 'validation_failed'],
    ['half a character', '{"name":"a\\ud800"}', 'validation_failed'],
    ['a control character', { name: 'a\u007fb' }, 'validation_failed'],
    ['a list', { name: ['x'] }, 'validation_failed'],
    ['__proto__', '{"name":"x","__proto__":{"id":"y"}}', 'unknown_field'],
    ['an id of its own', { name: 'x', id: NOBODY }, 'unknown_field'],
    ['a first key that is none', { name: 'x', first_key: 'admin' }, 'validation_failed'],
    ['a first key with an unknown scope', { name: 'x', first_key: { scopes: ['x'] } }, 'validation_failed'],
    ['a first key without scopes', { name: 'x', first_key: { scopes: [] } }, 'validation_failed'],
    ['a first key with a broken name', { name: 'x', first_key: { name: '\n' } }, 'validation_failed'],
    ['a first key with __proto__', '{"name":"x","first_key":{"__proto__":{"name":"y"}}}', 'unknown_field'],
    ['a first key with more', { name: 'x', first_key: { expires_at: null } }, 'unknown_field'],
  ])('is refused with nothing stored: %s', async (_what, body, code) => {
    const before = await rowCounts(stage.pool);
    expectProblem(await operator.post('/v1/tenants', body), 422, code);
    expect(await rowCounts(stage.pool)).toEqual(before);
  });

  it('that nobody has is 404 on every route, and an id of another kind 400', async () => {
    for (const route of ROUTES.slice(2)) {
      expectProblem(await ask(operator, route), 404, 'tenant_not_found');
      const [method, path] = route;
      const other = await ask(operator, [method, path.replace(NOBODY, `ep_${'0'.repeat(32)}`)]);
      expectProblem(other, 400, 'invalid_id');
      expectAnyProblem(await ask(operator, [method, path.replace(NOBODY, '%00')]));
    }
    const { id } = await make();
    expectProblem(await operator.post(`/v1/tenants/${id}/suspend`, { reason: 'x' }), 422, 'unknown_field');
    expectProblem(await operator.get(`/v1/tenants/${id}?x=1`), 422, 'unknown_field');
    expect((await read(id)).status).toBe('active');
  });
});

it('[row 90] the list shows tenants newest first, page by page, each once', async () => {
  for (let number = 0; number < 12; number += 1) await make({ name: `tenant ${number}` });
  const seen: ShownTenant[] = [];
  let path = '/v1/tenants?limit=5';
  for (;;) {
    const page = expectStatus(await operator.get<Page>(path), 200);
    seen.push(...page.data);
    if (page.next_cursor === null) break;
    expect(page.data).toHaveLength(5);
    path = `/v1/tenants?limit=5&cursor=${page.next_cursor}`;
  }
  const { rows } = await stage.pool.query('select from waybill.tenants where deleted_at is null');
  expect(seen).toHaveLength(rows.length);
  expect(seen.map(({ id }) => id)).toEqual([...new Set(seen.map(({ id }) => id))].toSorted().toReversed());
  const { next_cursor: cursor } = (await operator.get<Page>('/v1/tenants?limit=1')).body;
  for (const wrong of [
    'limit=0',
    'limit=101',
    'cursor=x',
    `deleting=true&cursor=${cursor}`,
    'deleting=1',
    'x=1',
  ])
    expect((await operator.get(`/v1/tenants?${wrong}`)).status).toBe(422);
});

describe('a suspended tenant', () => {
  it('is refused by the next request on every road, holds what it owes, and goes on when resumed', async () => {
    const { tenant, client } = await makeWithKey();
    const { client: other } = await makeWithKey();
    await stage.addEndpoint({ url: `${stage.receiver.url}/suspended` }, client);
    await stage.addEndpoint({ url: `${stage.receiver.url}/other` }, other);
    const before = await read(tenant.id);
    const first = await operator.post<ShownTenant>(`/v1/tenants/${tenant.id}/suspend`);
    expect(first).toMatchObject({ status: 200, body: { status: 'suspended', version: before.version + 1 } });
    const again = await operator.post(`/v1/tenants/${tenant.id}/suspend`);
    expect([again.status, again.body]).toEqual([200, first.body]);
    for (const refused of [client.get('/v1/events'), client.publish('a.b', {}), client.get('/v1/keys')])
      expectProblem(await refused, 403, 'tenant_suspended');

    // Owed from before its suspension.
    const resumed = await operator.post(`/v1/tenants/${tenant.id}/resume`);
    expect(resumed).toMatchObject({ status: 200, body: { status: 'active', suspended_at: null } });
    const owed = expectStatus(await client.publish<ShownEvent>('a.b', {}), 201);
    await operator.post(`/v1/tenants/${tenant.id}/suspend`);
    const dispatcher = await stage.bootDispatcher(QUICK_RETRIES);
    const sent = expectStatus(await other.publish<ShownEvent>('a.b', {}), 201);
    await stage.receiver.waitFor(1);
    const [request] = stage.receiver.requests;
    expect([request!.path, request!.deliveryId]).toEqual(['/other', sent.deliveries[0]!.id]);
    await operator.post(`/v1/tenants/${tenant.id}/resume`);
    expect(await operator.post(`/v1/tenants/${tenant.id}/resume`)).toMatchObject({ status: 200 });
    await stage.receiver.waitFor(2);
    expect(stage.receiver.requests.map(({ path }) => path)).toEqual(['/other', '/suspended']);
    await waitFor(
      async () => {
        const id = owed.deliveries[0]!.id;
        return (await client.get<ShownDelivery>(`/v1/deliveries/${id}`)).body.state === 'succeeded';
      },
      { what: 'what was held to be delivered' },
    );
    expect(await dispatcher.stop()).toEqual({ code: 0, signal: null });
  });
});

describe('a deleted tenant', () => {
  it('is found by nobody at once, its keys are none, and what it owned goes when a dispatcher comes', async () => {
    const { tenant, client } = await makeWithKey();
    await stage.addEndpoint({}, client);
    expectStatus(await client.publish('a.b', {}), 201);
    expect((await operator.delete(`/v1/tenants/${tenant.id}`)).status).toBe(204);
    for (const refused of [client.get('/v1/events'), client.publish('a.b', {}), client.get('/v1/keys')])
      expectProblem(await refused, 401, 'invalid_api_key');
    for (const [method, path] of ROUTES.slice(2))
      expectProblem(await ask(operator, [method, path.replace(NOBODY, tenant.id)]), 404, 'tenant_not_found');
    const listed = async (query: string) =>
      (await operator.get<Page>(`/v1/tenants?limit=100${query}`)).body.data.find(
        ({ id }) => id === tenant.id,
      );
    expect(await listed('')).toBeUndefined();
    expect(await listed('&deleting=true')).toMatchObject({ status: 'deleting', name: 'acme' });
    const requests = stage.receiver.requests.length;
    const dispatcher = await stage.bootDispatcher(QUICK_RETRIES);
    await waitFor(async () => (await listed('&deleting=true')) === undefined, { what: 'its last row to go' });
    expect(dispatcher.logs().some(({ event }) => event === 'tenant.erased')).toBe(true);
    expect(stage.receiver.requests.length).toBe(requests);
    await dispatcher.stop();
  });

  it('takes back a request that was under way: its transaction comes too late', async () => {
    const { tenant, client } = await makeWithKey();
    const held = stage.proxy.on('set local waybill.tenant', {
      moment: 'before',
      action: 'swallow',
      times: 1,
    });
    const late = client.post('/v1/endpoints', { url: `${stage.receiver.url}/late` });
    await held.hit;
    await operator.delete(`/v1/tenants/${tenant.id}`);
    held.release();
    expectProblem(await late, 401, 'invalid_api_key');
    const { rows } = await stage.pool.query('select from waybill.endpoints where tenant_id = $1', [
      tenant.id.slice(4),
    ]);
    expect(rows).toEqual([]);
  });

  it('takes back an event that was under way: nothing of it is stored', async () => {
    const { tenant, client } = await makeWithKey();
    await stage.addEndpoint({}, client);
    const held = stage.proxy.on('insert into waybill.events', {
      moment: 'before',
      action: 'swallow',
      times: 1,
    });
    const late = client.publish('a.b', {});
    await held.hit;
    await operator.delete(`/v1/tenants/${tenant.id}`);
    held.release();
    expectProblem(await late, 401, 'invalid_api_key');
    const { rows } = await stage.pool.query('select from waybill.events where tenant_id = $1', [
      tenant.id.slice(4),
    ]);
    expect(rows).toEqual([]);
    // Nobody else's request was harmed.
    const { key } = await createTenantWithKey(stage.database.url);
    expect((await stage.clientOf(stage.api, key).publish('a.b', {})).status).toBe(201);
  });
});
