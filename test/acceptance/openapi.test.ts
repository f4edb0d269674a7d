import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { SCOPES } from '#tenants';

import { ApiStage, QUICK_RETRIES } from '../support/api-stage.js';
import { type ApiClient, createClient } from '../support/api-client.js';
import { describeCalls, targetOf } from '../support/described-calls.js';
import {
  type DocumentOperation,
  type DocumentSchema,
  operationAt,
  OPERATIONS,
} from '../support/openapi-document.js';
import { sendRaw } from '../support/raw-http.js';
import { createTenantWithKey } from '../support/tenant.js';
import { waitFor } from '../support/wait-for.js';

const OPERATOR_KEY = 'operator-key-of-the-tests-0123456789';
const stage = new ApiStage({
  env: { WAYBILL_METRICS_TOKEN: 'tok-metrics', WAYBILL_OPERATOR_KEY: OPERATOR_KEY },
});
const calls = describeCalls();
const METHODS = ['DELETE', 'GET', 'HEAD', 'PATCH', 'POST', 'PUT'];
const METRICS = { authorization: 'Bearer tok-metrics' };

const call: typeof calls.call = (...args) => calls.call(...args);
const named = (operations: readonly DocumentOperation[]) =>
  operations.map((each) => [each.id, each] as const);
const scoped = OPERATIONS.filter(({ scope }) => scope !== null);
const operators = OPERATIONS.filter(({ isOperators }) => isOperators);
const keyed = [...scoped, ...operators];
const withBody = keyed.filter(({ body }) => body !== null);
const withIds = keyed.filter(({ parameters }) => parameters.some((parameter) => parameter.in === 'path'));

let operator: ApiClient;
beforeAll(() => {
  operator = stage.clientOf(stage.api, OPERATOR_KEY);
});

/** Who may call an operation: the tenant with all scopes, or the operator. */
const holderOf = ({ isOperators }: DocumentOperation): ApiClient => (isOperators ? operator : stage.client);

/** What the path of an operation names that has to be there before it can do anything. */
async function existing(id: string): Promise<Record<string, string>> {
  if (['updateEndpoint', 'createSecret', 'listSecrets'].includes(id)) {
    return { id: (await stage.addEndpoint({ event_types: ['never'] })).id };
  }
  if (['renameKey', 'rotateKey'].includes(id)) {
    const body = { name: 'to change', scopes: ['events:read'] };
    return { id: String((await call(stage.client, 'createKey', { body })).body['id']) };
  }
  // The example of an event that is matched is for a consumer.
  if (['updateConsumer', 'matchEvent'].includes(id)) {
    return { id: String((await call(stage.client, 'ensureConsumer', { body: { uid: 'acme' } })).body['id']) };
  }
  if (id === 'renameTenant') {
    return { id: String((await call(operator, 'createTenant', { body: { name: 'to change' } })).body['id']) };
  }
  return {};
}

describe('the document and the server', () => {
  it('know the same routes, those that stand ahead of Express too', async () => {
    const script = `
      import 'reflect-metadata';
      import { readServedRoutes } from './dist/apps/api/openapi/routes.js';
      console.log(JSON.stringify(await readServedRoutes()));
    `;
    const { stdout } = await promisify(execFile)(
      process.execPath,
      ['--input-type=module', '--eval', script],
      { cwd: new URL('../..', import.meta.url) },
    );
    const served = JSON.parse(stdout) as string[];
    const described = OPERATIONS.map(({ method, path }) => `${method} ${path}`);
    expect(served.toSorted()).toEqual(described.toSorted());
    expect(described).toEqual(expect.arrayContaining(['post /v1/events', 'post /v1/events/batch']));
  });

  it.each([...new Set(OPERATIONS.map(({ path }) => path))])(
    'know the same methods of %s, and a 405 names them',
    async (path) => {
      const target = targetOf(OPERATIONS.find((each) => each.path === path)!.id);
      // Another path may fit the target too: /v1/events/batch is a GET of an event by its looks.
      const allowed = METHODS.filter((method) => operationAt(method, target) !== null);
      for (const method of METHODS.filter((each) => each !== 'HEAD')) {
        const { answers } = await sendRaw(stage.api.url, `${method} ${target} HTTP/1.1\r\nhost: api\r\n\r\n`);
        const { status, headers } = answers[0]!;
        const isAllowed = allowed.includes(method);
        expect([method, status === 405, headers['allow']]).toEqual([
          method,
          !isAllowed,
          isAllowed ? undefined : allowed.join(', '),
        ]);
      }
    },
  );
});

describe('every operation with a key', () => {
  let withoutKey: ApiClient;
  const byScope = new Map<string, { readonly only: ApiClient; readonly allBut: ApiClient }>();

  beforeAll(async () => {
    withoutKey = createClient(stage.api.url, null);
    for (const scope of new Set(scoped.map((each) => each.scope!))) {
      const own = SCOPES.filter((each) => each === scope);
      const others = SCOPES.filter((each) => each !== scope && each !== 'admin');
      const [only, allBut] = await Promise.all([
        createTenantWithKey(stage.database.url, { scopes: own }),
        createTenantWithKey(stage.database.url, { scopes: others }),
      ]);
      byScope.set(scope, { only: only.clientOf(stage.api.url), allBut: allBut.clientOf(stage.api.url) });
    }
  });
  afterAll(() => {
    withoutKey.close();
    for (const { only, allBut } of byScope.values()) [only, allBut].forEach((client) => client.close());
  });

  it.each(named(scoped))('%s asks for one, and for the scope that it names', async (id, { scope }) => {
    expect((await call(withoutKey, id)).status).toBe(401);
    const { only, allBut } = byScope.get(scope!)!;
    const refused = await call(allBut, id);
    expect([refused.status, refused.body['code']]).toEqual([403, 'insufficient_scope']);
    expect((await call(only, id)).status).not.toBe(403);
  });

  it.each(named(operators))("%s asks for the operator's, and takes no tenant's", async (id, operation) => {
    expect((await call(withoutKey, id)).status).toBe(401);
    const refused = await call(stage.client, id);
    expect([refused.status, refused.body['code']]).toEqual([401, 'invalid_operator_key']);
    expect((await call(holderOf(operation), id)).status).not.toBe(401);
  });

  it.each(named(keyed))('%s refuses a query parameter that it does not know', async (id, operation) => {
    const answer = await call(holderOf(operation), id, { query: '?limits=1' });
    expect([answer.status, answer.body['code']]).toEqual([422, 'unknown_field']);
  });

  it.each(named(withIds))('%s knows an id that is none from one of nobody', async (id, operation) => {
    const names = operation.parameters.filter((each) => each.in === 'path').map(({ name }) => name);
    // What begins as the id of a consumer is no uid.
    const path = Object.fromEntries(names.map((name) => [name, 'con_x']));
    const body = operation.body?.example as object | undefined;
    const client = holderOf(operation);
    expect((await call(client, id, { path, ...(body && { body }) })).status).toBe(400);
    expect((await call(client, id, body && { body })).status).toBe(404);
  });

  it.each(named(withBody))('%s refuses a body that is not what it describes', async (id, operation) => {
    const client = holderOf(operation);
    const answers = [
      await call(client, id, { body: '{' }),
      await call(client, id, { body: '{}', headers: { 'content-type': 'text/plain' } }),
      await call(client, id, { body: '[]' }),
      await call(client, id, { body: { 'not-known': 1 } }),
      await call(client, id, { body: { id: 'x'.repeat(id === 'publishBatch' ? 9_000_000 : 400_000) } }),
    ];
    expect(answers.map(({ status }) => status)).toEqual([400, 415, 422, 422, 413]);
  });

  it.each(named(keyed.filter(({ parameters }) => parameters.some(({ name }) => name === 'limit'))))(
    '%s takes its parameters within their bounds alone',
    async (id, operation) => {
      const { parameters } = operation;
      const client = holderOf(operation);
      const path = await existing(id);
      for (const { name, schema, example } of parameters.filter((each) => each.in === 'query')) {
        if (example !== undefined) {
          const good = await call(client, id, {
            path,
            query: `?${name}=${encodeURIComponent(String(example))}`,
          });
          expect([name, good.status]).toEqual([name, 200]);
        }
        const bad = await call(client, id, { path, query: `?${name}=%00` });
        expect([name, bad.status]).toEqual([name, isId(schema) || CONSUMERS.includes(name) ? 400 : 422]);
      }
      for (const limit of ['0', '101', '1.5', '-1', 'x'])
        expect((await call(client, id, { path, query: `?limit=${limit}` })).body['code']).toBe(
          'invalid_limit',
        );
      expect((await call(client, id, { path, query: '?limit=1' })).status).toBe(200);
    },
  );
});

/** Parameters that name a consumer: what is no uid is told from what is refused, too. */
const CONSUMERS = ['consumer', 'uid'];

/** Whether a schema is that of an id: what is none is told from what is refused. */
function isId({ pattern }: DocumentSchema): boolean {
  return typeof pattern === 'string' && pattern.endsWith('_[0-9a-f]{32}$');
}

describe('every operation', () => {
  it('answers, when all goes well, with what it describes', async () => {
    const { client } = stage;
    const dispatcher = await stage.bootDispatcher(QUICK_RETRIES);
    const endpoint = await call(client, 'createEndpoint', {
      body: {
        url: `${stage.receiver.url}/hook`,
        event_types: ['order.*'],
        retry: { schedule_seconds: [0.1], jitter: 'full' },
        timeout: { total_ms: 900 },
        circuit: { failures: 1_000 },
      },
    });
    const endpointId = String(endpoint.body['id']);
    const other = await call(client, 'createEndpoint', {
      body: { url: stage.receiver.url, event_types: ['never'], status: 'paused', circuit: 'off' },
    });
    const otherId = String(other.body['id']);
    stage.receiver.answer(500);
    const published = { event_type: 'order.created', payload: { n: 1.0 }, metadata: { source: 'test' } };
    const headers = { 'idempotency-key': 'known' };
    const event = await call(client, 'publishEvent', { body: published, headers });
    expect((await call(client, 'publishEvent', { body: published, headers })).status).toBe(201);
    expect((await call(client, 'publishEvent', { body: { ...published, payload: 2 }, headers })).status).toBe(
      409,
    );
    const eventId = String(event.body['id']);
    const deliveryId = (event.body['deliveries'] as { id: string }[])[0]!.id;
    await waitFor(
      async () => (await call(client, 'readDelivery', { path: { id: deliveryId } })).body['state'] === 'dead',
      { what: 'the delivery to die' },
    );
    await call(client, 'explainDelivery', { path: { id: deliveryId } });
    await call(client, 'readDeadLetter', { path: { delivery_id: deliveryId } });
    expect((await call(client, 'cancelDelivery', { path: { id: deliveryId } })).status).toBe(409);
    expect((await call(client, 'cancelEvent', { path: { id: eventId } })).status).toBe(409);

    const events = [
      { event_type: 'order.created', payload: 1, not_before: new Date(Date.now() + 60_000).toISOString() },
      { event_type: 'order.paid', payload: [], idempotency_key: 'k' },
      { event_type: 'order.paid', payload: [], idempotency_key: 'k' },
    ];
    expect((await call(client, 'publishBatch', { body: { events } })).status).toBe(201);
    const mixed = { events: [...events, { event_type: 'not ok', payload: 1 }], mode: 'per_item' };
    const results = await call(client, 'publishBatch', { body: mixed });
    expect(results.status).toBe(200);
    const later = (results.body['data'] as { event?: { id: string; deliveries: { id: string }[] } }[])[0]!
      .event!;
    const waiting = { id: later.deliveries[0]!.id };
    await call(client, 'explainDelivery', { path: waiting });
    expect((await call(client, 'replayDelivery', { path: waiting })).status).toBe(409);
    expect((await call(client, 'cancelDelivery', { path: waiting })).status).toBe(200);
    expect((await call(client, 'cancelEvent', { path: { id: later.id } })).status).toBe(200);
    expect((await call(client, 'replayDelivery', { path: waiting })).status).toBe(202);

    const added = { path: { id: eventId }, body: { endpoint_id: otherId } };
    expect((await call(client, 'addDelivery', added)).status).toBe(201);
    expect((await call(client, 'addDelivery', added)).status).toBe(409);
    const read = await call(client, 'readEvent', { path: { id: eventId } });
    expect(read.text).toContain('"payload":{"n":1}');
    for (const id of ['listEvents', 'listEndpoints', 'listDeliveries', 'listDeadLetters']) {
      expect((await call(client, id, { query: '?limit=1' })).status).toBe(200);
    }

    const path = { id: endpointId };
    const shown = await call(client, 'readEndpoint', { path });
    expect(shown.headers['etag']).toBe(endpoint.headers['etag']);
    const change = { path, body: { description: 'changed' }, headers: { 'if-match': '"1"' } };
    expect((await call(client, 'updateEndpoint', change)).status).toBe(200);
    expect((await call(client, 'updateEndpoint', change)).status).toBe(412);
    expect((await call(client, 'deleteEndpoint', { path, headers: { 'if-match': '"1"' } })).status).toBe(412);
    expect((await call(client, 'deleteEndpoint', { path })).status).toBe(204);
    await dispatcher.stop();

    for (const id of ['checkLiveness', 'checkReadiness', 'readDocs', 'readOpenapi']) {
      expect((await call(client, id)).status).toBe(200);
    }
    expect((await call(client, 'readMetrics')).status).toBe(401);
    expect((await call(client, 'readMetrics', { headers: METRICS })).status).toBe(200);
    for (const id of ['readDocs', 'readOpenapi']) {
      const etag = String((await call(client, id)).headers['etag']);
      expect((await call(client, id, { headers: { 'if-none-match': etag } })).status).toBe(304);
    }
  });

  it('answers so to whoever changes the secrets of an endpoint', async () => {
    const { client } = stage;
    const { id } = await stage.addEndpoint({ event_types: ['never'] });
    const path = { id };
    const headers = { 'idempotency-key': 'rotated-once', 'if-match': '"1"' };
    const first = await call(client, 'createSecret', { path, headers });
    expect([first.status, first.headers['etag']]).toEqual([201, '"2"']);
    const again = await call(client, 'createSecret', { path, headers });
    expect([again.status, again.headers['idempotency-replayed']]).toEqual([201, 'true']);
    expect((await call(client, 'createSecret', { path, headers: { 'if-match': '"1"' } })).status).toBe(412);
    const shown = await call(client, 'listSecrets', { path, query: '?limit=2' });
    const [newest, oldest] = (shown.body['data'] as { id: string }[]).map((secret) => secret.id);
    expect(newest).toBe(first.body['id']);
    expect((await call(client, 'revokeSecret', { path: { id, secretId: newest! } })).status).toBe(409);
    expect((await call(client, 'revokeSecret', { path: { id, secretId: oldest! } })).status).toBe(204);
  });

  it('answers so to whoever makes keys and ends them', async () => {
    const { client } = stage;
    const body = { name: 'erp', scopes: ['events:write'], expires_at: '2099-01-01T00:00:00Z' };
    const headers = { 'idempotency-key': 'key-made-once' };
    const made = await call(client, 'createKey', { body, headers });
    const again = await call(client, 'createKey', { body, headers });
    expect([made.status, again.status, again.headers['idempotency-replayed']]).toEqual([201, 201, 'true']);
    expect((await call(client, 'createKey', { body: { ...body, name: 'x' }, headers })).status).toBe(409);
    const path = { id: String(made.body['id']) };
    expect((await call(client, 'readKey', { path })).status).toBe(200);
    const change = { path, body: { name: 'shop' }, headers: { 'if-match': '"1"' } };
    expect((await call(client, 'renameKey', change)).status).toBe(200);
    expect((await call(client, 'renameKey', change)).status).toBe(412);
    expect((await call(client, 'rotateKey', { path, body: { overlap_seconds: 0 } })).status).toBe(201);
    expect((await call(client, 'rotateKey', { path })).status).toBe(409);
    expect((await call(client, 'listKeys')).status).toBe(200);
    expect((await call(client, 'revokeKey', { path })).status).toBe(204);
  });

  it('answers so to whoever keeps consumers, and asks who would get an event', async () => {
    const { client } = stage;
    const body = { uid: 'acme', name: 'Acme', metadata: { plan: 'gold' } };
    expect((await call(client, 'ensureConsumer', { body })).status).toBe(201);
    const again = await call(client, 'ensureConsumer', { body });
    expect(again.status).toBe(200);
    const consumerId = String(again.body['id']);
    expect((await call(client, 'listConsumers', { query: '?uid=acme' })).status).toBe(200);
    const filter = { 'order.total': { $gte: 100 } };
    const wanted = { url: stage.receiver.url, event_types: ['matched'], consumer: 'acme', filter };
    const endpoint = await call(client, 'createEndpoint', { body: wanted });
    expect(endpoint.body).toMatchObject({ consumer_id: consumerId, filter });
    const event = { event_type: 'matched', payload: { order: { total: 99 } }, consumer: consumerId };
    const matched = await call(client, 'matchEvent', { body: event });
    expect(matched.body).toEqual({
      matching: 0,
      passed_over: 1,
      endpoints: [{ endpoint_id: endpoint.body['id'], verdict: 'filtered' }],
    });
    expect((await call(client, 'publishEvent', { body: event })).status).toBe(201);
    for (const id of ['acme', consumerId]) {
      expect((await call(client, 'readConsumer', { path: { id } })).status).toBe(200);
      const change = { path: { id }, body: { name: id }, headers: { 'if-match': '"1"' } };
      expect((await call(client, 'updateConsumer', change)).status).toBe(id === 'acme' ? 200 : 412);
    }
    expect((await call(client, 'deleteConsumer', { path: { id: 'acme' } })).status).toBe(204);
    expect((await call(client, 'publishEvent', { body: event })).status).toBe(404);
  });

  it('answers so to the operator', async () => {
    const body = { name: 'acme', first_key: { scopes: ['keys'] } };
    const headers = { 'idempotency-key': 'tenant-made-once' };
    const made = await call(operator, 'createTenant', { body, headers });
    const again = await call(operator, 'createTenant', { body, headers });
    expect([made.status, again.status, again.headers['idempotency-replayed']]).toEqual([201, 201, 'true']);
    const path = { id: String(made.body['id']) };
    for (const id of ['readTenant', 'suspendTenant', 'readTenant', 'resumeTenant']) {
      expect([id, (await call(operator, id, { path })).status]).toEqual([id, 200]);
    }
    const change = { path, body: { name: 'Acme' }, headers: { 'if-match': '"1"' } };
    expect((await call(operator, 'renameTenant', change)).status).toBe(412);
    expect((await call(operator, 'renameTenant', { path, body: { name: 'Acme' } })).status).toBe(200);
    expect((await call(operator, 'deleteTenant', { path })).status).toBe(204);
    expect((await call(operator, 'deleteTenant', { path })).status).toBe(404);
    for (const query of ['', '?deleting=true']) {
      expect((await call(operator, 'listTenants', { query })).status).toBe(200);
    }
    expect((await call(operator, 'createTenant', { body, headers })).status).toBe(404);
  });

  it.each(named(withBody))('%s takes its own example', async (id, operation) => {
    const path = await existing(id);
    const answer = await call(holderOf(operation), id, { path, body: operation.body!.example as object });
    // Where the ids of the example and of the path are nobody's, that is all that is wrong.
    if (answer.status === 404) expect([id, answer.body['code']]).toEqual(['addDelivery', 'event_not_found']);
    else expect([id, answer.status < 300]).toEqual([id, true]);
  });

  it('was seen to answer with every success that it documents', () => {
    const unseen = OPERATIONS.flatMap(({ id, responses }) =>
      Object.keys(responses)
        .filter((status) => Number(status) < 400 && !calls.seen.get(id)!.has(Number(status)))
        .map((status) => `${id} ${status}`),
    );
    expect(unseen).toEqual([]);
  });

  it('says 503 as it describes it while the database is away', async () => {
    await stage.proxy.refuse(true);
    stage.proxy.cutAll();
    try {
      for (const operation of keyed) {
        const { id, body } = operation;
        const answer = await call(
          holderOf(operation),
          id,
          body === null ? {} : { body: body.example as object },
        );
        expect([id, answer.status, answer.body['code']]).toEqual([id, 503, 'database_unavailable']);
      }
      await waitFor(async () => (await call(stage.client, 'checkReadiness')).status === 503, {
        what: 'readiness to go red',
      });
    } finally {
      await stage.proxy.refuse(false);
    }
  });
});
