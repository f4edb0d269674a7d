import { readFileSync } from 'node:fs';

import { beforeAll, describe, expect, it } from 'vitest';

import type { ApiClient, ApiResponse } from '../support/api-client.js';
import { ApiStage, type CreatedEndpoint, QUICK_ATTEMPTS } from '../support/api-stage.js';
import { expectProblem } from '../support/expect-problem.js';
import { expectTerminal } from '../support/expect-terminal.js';
import { startReceiver } from '../support/receiver.js';
import { rowCounts, tenantRows } from '../support/row-counts.js';
import { createTenantWithKey, type TestTenant } from '../support/tenant.js';

interface Accepted {
  readonly id: string;
  readonly deliveries: readonly { readonly id: string }[];
}

interface Page {
  readonly data: readonly { readonly id?: string; readonly delivery_id?: string }[];
  readonly next_cursor: string | null;
}

interface Consumer {
  readonly id: string;
  readonly uid: string;
}

const stage = new ApiStage();
/** B owns what A reaches for. */
let b: {
  tenant: TestTenant;
  client: ApiClient;
  key: { id: string };
  consumer: Consumer;
  endpoint: CreatedEndpoint;
  unheard: CreatedEndpoint;
  events: Accepted[];
};
/** A's own things, which A must go on seeing. */
let a: { key: { id: string }; endpoint: CreatedEndpoint; unheard: CreatedEndpoint; events: Accepted[] };

beforeAll(async () => {
  const tenant = await createTenantWithKey(stage.database.url, { name: 'B' });
  const client = stage.clientOf(stage.api, tenant.key);
  const endpoint = await stage.addEndpoint({ description: 'of B' }, client);
  // Endpoints of each that get no event by themselves.
  const quiet = { event_types: ['never.sent'] };
  const unheard = await stage.addEndpoint({ ...quiet, description: 'of B' }, client);
  const spare = async (by: ApiClient) =>
    (await by.post<{ id: string }>('/v1/keys', { name: 'of B', scopes: ['keys'] })).body;
  a = {
    key: await spare(stage.client),
    endpoint: await stage.addEndpoint({ description: 'of A' }),
    unheard: await stage.addEndpoint(quiet),
    events: [],
  };
  const consumer = (
    await client.post<Consumer>('/v1/consumers', {
      uid: 'customer',
      name: 'of B',
      metadata: { note: 'of B' },
    })
  ).body;
  b = { tenant, client, key: await spare(client), consumer, endpoint, unheard, events: [] };
  for (const [owner, by] of [
    [a, stage.client],
    [b, client],
  ] as const) {
    for (let number = 0; number < 3; number += 1)
      owner.events.push((await by.publish<Accepted>('thing.made', { number })).body);
  }
  // All of them die, so that there are attempts and dead letters to reach for.
  stage.receiver.answer(500);
  const dispatcher = await stage.bootDispatcher();
  await expectTerminal(stage.pool, {
    receivers: [stage.receiver],
    apps: [stage.api, dispatcher],
    attemptLimit: QUICK_ATTEMPTS,
  });
  await dispatcher.stop();
  expect((await rowCounts(stage.pool)).dead_letters).toBe(6);
});

/** Another id of the same form and moment that nobody has. */
function unknownLike(id: string): string {
  const flipped = (Number.parseInt(id.slice(-1), 16) ^ 0xf).toString(16);
  return id.slice(0, -1) + flipped;
}

/** An answer without what differs between any two requests. */
function comparable({ status, headers, text }: ApiResponse<unknown>): object {
  const { date: _date, 'x-request-id': requestId, ...rest } = headers;
  const id = typeof requestId === 'string' ? requestId : '';
  return { status, headers: rest, text: id === '' ? text : text.replace(id, 'REQUEST') };
}

type Route = (client: ApiClient, id: string) => Promise<ApiResponse<unknown>>;

/** Every route that takes an id in its path, by the words of its controller. */
const ROUTES: Record<string, { kind: 'event' | 'delivery' | 'endpoint' | 'key' | 'consumer'; call: Route }> =
  {
    'GET v1/events/:id': { kind: 'event', call: (client, id) => client.get(`/v1/events/${id}`) },
    'GET v1/deliveries/:id': { kind: 'delivery', call: (client, id) => client.get(`/v1/deliveries/${id}`) },
    'POST v1/deliveries/:id/replay': {
      kind: 'delivery',
      call: (client, id) => client.post(`/v1/deliveries/${id}/replay`),
    },
    'GET v1/deliveries/:id/explain': {
      kind: 'delivery',
      call: (client, id) => client.get(`/v1/deliveries/${id}/explain`),
    },
    // Behind the replay, which leaves B's own delivery pending.
    'POST v1/deliveries/:id/cancel': {
      kind: 'delivery',
      call: (client, id) => client.post(`/v1/deliveries/${id}/cancel`),
    },
    'POST v1/events/:id/cancel': {
      kind: 'event',
      call: (client, id) => client.post(`/v1/events/${id}/cancel`),
    },
    'POST v1/events/:id/deliveries': {
      kind: 'event',
      call: (client, id) =>
        client.post(`/v1/events/${id}/deliveries`, {
          endpoint_id: client === b.client ? b.unheard.id : a.unheard.id,
        }),
    },
    'GET v1/dead-letters/:delivery_id': {
      kind: 'delivery',
      call: (client, id) => client.get(`/v1/dead-letters/${id}`),
    },
    'GET v1/endpoints/:id': { kind: 'endpoint', call: (client, id) => client.get(`/v1/endpoints/${id}`) },
    'PATCH v1/endpoints/:id': {
      kind: 'endpoint',
      call: (client, id) => client.patch(`/v1/endpoints/${id}`, { description: 'taken', status: 'disabled' }),
    },
    'GET v1/endpoints/:id/secrets': {
      kind: 'endpoint',
      call: (client, id) => client.get(`/v1/endpoints/${id}/secrets`),
    },
    'POST v1/endpoints/:id/secrets': {
      kind: 'endpoint',
      call: (client, id) => client.post(`/v1/endpoints/${id}/secrets`),
    },
    // The oldest, which B's own rotation lets end.
    'DELETE v1/endpoints/:id/secrets/:secretId': {
      kind: 'endpoint',
      call: async (client, id) => {
        const { body } = await client.get<Partial<Page>>(`/v1/endpoints/${id}/secrets`);
        const secretId = body.data?.at(-1)?.id ?? `sec_${'0'.repeat(32)}`;
        return client.delete(`/v1/endpoints/${id}/secrets/${secretId}`);
      },
    },
    'DELETE v1/endpoints/:id': {
      kind: 'endpoint',
      call: (client, id) => client.delete(`/v1/endpoints/${id}`),
    },
    'GET v1/keys/:id': { kind: 'key', call: (client, id) => client.get(`/v1/keys/${id}`) },
    'PATCH v1/keys/:id': {
      kind: 'key',
      call: (client, id) => client.patch(`/v1/keys/${id}`, { name: 'taken' }),
    },
    'POST v1/keys/:id/rotate': {
      kind: 'key',
      call: (client, id) => client.post(`/v1/keys/${id}/rotate`, { overlap_seconds: 0 }),
    },
    'DELETE v1/keys/:id': { kind: 'key', call: (client, id) => client.delete(`/v1/keys/${id}`) },
    'GET v1/consumers/:id': { kind: 'consumer', call: (client, id) => client.get(`/v1/consumers/${id}`) },
    'PATCH v1/consumers/:id': {
      kind: 'consumer',
      call: (client, id) => client.patch(`/v1/consumers/${id}`, { name: 'taken' }),
    },
    'DELETE v1/consumers/:id': {
      kind: 'consumer',
      call: (client, id) => client.delete(`/v1/consumers/${id}`),
    },
  };

const CONTROLLERS = [
  'events/events.controller.ts',
  'events/event-deliveries.controller.ts',
  'deliveries/deliveries.controller.ts',
  'dead-letters/dead-letters.controller.ts',
  'endpoints/endpoints.controller.ts',
  'endpoints/endpoint-secrets.controller.ts',
  'keys/keys.controller.ts',
  'consumers/consumers.controller.ts',
];

it('[row 67] every route of the controllers that takes an id is tried here', () => {
  const declared = CONTROLLERS.flatMap((file) => {
    const text = readFileSync(new URL(`../../apps/api/src/${file}`, import.meta.url), 'utf8');
    const path = /@Controller\('([^']+)'\)/.exec(text)![1]!;
    return [...text.matchAll(/@(Get|Post|Patch|Put|Delete)\('([^']*:[^']*)'\)/g)].map(
      ([, method, rest]) => `${method!.toUpperCase()} ${path}/${rest}`,
    );
  });
  expect(declared.toSorted()).toEqual(Object.keys(ROUTES).toSorted());
});

describe.each(Object.entries(ROUTES))('[row 67] %s', (_route, { kind, call }) => {
  it("answers A about a thing of B's exactly as about one that nobody has, and leaves it alone", async () => {
    const ids = {
      event: b.events[0]!.id,
      delivery: b.events[0]!.deliveries[0]!.id,
      endpoint: b.endpoint.id,
      key: b.key.id,
      consumer: b.consumer.id,
    };
    const before = [
      await tenantRows(stage.pool, b.tenant.tenantId),
      await tenantRows(stage.pool, stage.tenant.tenantId),
    ];
    const foreign = await call(stage.client, ids[kind]);
    const unknown = await call(stage.client, unknownLike(ids[kind]));
    expect(foreign.status).toBe(404);
    expect(comparable(foreign)).toEqual(comparable(unknown));
    expect([
      await tenantRows(stage.pool, b.tenant.tenantId),
      await tenantRows(stage.pool, stage.tenant.tenantId),
    ]).toEqual(before);
    expect(foreign.text).not.toContain('of B');
  });
});

it('[row 67] answers A in the same way with a precondition that B would pass', async () => {
  const etag = (await b.client.get(`/v1/endpoints/${b.endpoint.id}`)).headers['etag']!;
  const before = await tenantRows(stage.pool, b.tenant.tenantId);
  for (const id of [b.endpoint.id, unknownLike(b.endpoint.id)]) {
    for (const tag of [etag, '"999"', '*']) {
      const patched = await stage.client.patch(
        `/v1/endpoints/${id}`,
        { description: 'x' },
        { 'if-match': tag },
      );
      const deleted = await stage.client.delete(`/v1/endpoints/${id}`, undefined, { 'if-match': tag });
      expect([patched, deleted]).toMatchObject([
        { status: 404, body: { code: 'endpoint_not_found' } },
        { status: 404, body: { code: 'endpoint_not_found' } },
      ]);
    }
  }
  expect(await tenantRows(stage.pool, b.tenant.tenantId)).toEqual(before);
});

it("[row 67] the uid of a consumer of B's is to A one that nobody has, wherever A names it", async () => {
  const before = await tenantRows(stage.pool, b.tenant.tenantId);
  for (const call of [
    (uid: string) => stage.client.get(`/v1/consumers/${uid}`),
    (uid: string) => stage.client.patch(`/v1/consumers/${uid}`, { name: 'taken' }),
    (uid: string) => stage.client.delete(`/v1/consumers/${uid}`),
    (uid: string) => stage.client.publish('thing.made', {}, { consumer: uid }),
    (uid: string) => stage.client.post('/v1/endpoints', { url: stage.receiver.url, consumer: uid }),
  ]) {
    for (const [known, unknown] of [
      [b.consumer.uid, 'customes'],
      [b.consumer.id, unknownLike(b.consumer.id)],
    ] as const) {
      const foreign = await call(known);
      expect(foreign).toMatchObject({ status: 404, body: { code: 'consumer_not_found' } });
      expect(comparable(foreign)).toEqual(comparable(await call(unknown)));
    }
  }
  for (const list of ['events', 'deliveries', 'endpoints']) {
    const foreign = await stage.client.get<Page>(`/v1/${list}?consumer=${b.consumer.id}`);
    expect(foreign).toMatchObject({ status: 200, body: { data: [], next_cursor: null } });
    expect(comparable(foreign)).toEqual(
      comparable(await stage.client.get(`/v1/${list}?consumer=${unknownLike(b.consumer.id)}`)),
    );
  }
  expect(await tenantRows(stage.pool, b.tenant.tenantId)).toEqual(before);
});

it("[row 67] a filter by a thing of B's finds A as much as one that nobody has: nothing", async () => {
  const { id: eventId } = b.events[0]!;
  for (const [path, id] of [
    ['/v1/deliveries?endpoint_id=', b.endpoint.id],
    ['/v1/deliveries?event_id=', eventId],
    ['/v1/deliveries?state=dead&endpoint_id=', b.endpoint.id],
    ['/v1/dead-letters?endpoint_id=', b.endpoint.id],
    ['/v1/dead-letters?resolved=false&endpoint_id=', b.endpoint.id],
  ] as const) {
    const foreign = await stage.client.get<Page>(path + id);
    expect(foreign).toMatchObject({ status: 200, body: { data: [], next_cursor: null } });
    expect(comparable(foreign)).toEqual(comparable(await stage.client.get(path + unknownLike(id))));
    expect((await b.client.get<Page>(path + id)).body.data.length).toBeGreaterThan(0);
  }
});

it.each(['/v1/events', '/v1/deliveries', '/v1/dead-letters', '/v1/endpoints', '/v1/keys'])(
  "[row 67] a cursor of B's list at %s shows A nothing but A's",
  async (path) => {
    const idsOf = ({ body }: ApiResponse<Page>) => body.data.map(({ id, delivery_id }) => id ?? delivery_id!);
    const listed = new Set(idsOf(await stage.client.get<Page>(`${path}?limit=100`)));
    const foreign = new Set(idsOf(await b.client.get<Page>(`${path}?limit=100`)));
    expect([listed.size > 0, foreign.size > 0]).toEqual([true, true]);
    expect([...listed].filter((id) => foreign.has(id))).toEqual([]);
    // Endpoints: B has one only, so its cursor comes from a list that was cut by a second one.
    const extra = path === '/v1/endpoints' ? await stage.addEndpoint({}, b.client) : null;
    const { next_cursor: cursor } = (await b.client.get<Page>(`${path}?limit=1`)).body;
    expect(cursor).toEqual(expect.any(String));
    expectProblem(await stage.client.get(`${path}?limit=100&cursor=${cursor}`), 422, 'invalid_cursor');
    // Nor does one that A has made its own by hand.
    const parts = JSON.parse(Buffer.from(cursor!, 'base64url').toString()) as string[];
    const forged = Buffer.from(
      JSON.stringify(parts.map((part) => (part === b.tenant.tenantId ? stage.tenant.tenantId : part))),
    ).toString('base64url');
    expect(forged).not.toBe(cursor);
    const seen = await stage.client.get<Page>(`${path}?limit=100&cursor=${forged}`);
    expect(seen.status).toBe(200);
    expect(idsOf(seen).filter((id) => !listed.has(id))).toEqual([]);
    if (extra !== null) await b.client.delete(`/v1/endpoints/${extra.id}`);
  },
);

it("[row 67] A's event goes to A's endpoint alone, though B takes everything", async () => {
  const before = await tenantRows(stage.pool, b.tenant.tenantId);
  const receiver = await startReceiver();
  const own = await stage.addEndpoint({ url: receiver.url });
  const { body } = await stage.client.publish<Accepted>('thing.made', { for: 'A alone' });
  expect(body.deliveries).toHaveLength(2);
  stage.receiver.answer(200);
  const dispatcher = await stage.bootDispatcher();
  await receiver.waitFor(1);
  await expectTerminal(stage.pool, {
    receivers: [stage.receiver, receiver],
    apps: [stage.api, dispatcher],
    attemptLimit: QUICK_ATTEMPTS,
  });
  expect(await tenantRows(stage.pool, b.tenant.tenantId)).toEqual(before);
  const paths = stage.receiver.requests.filter(({ body: bytes }) => bytes.includes('A alone'));
  expect(paths).toHaveLength(1);
  await stage.client.delete(`/v1/endpoints/${own.id}`);
  await dispatcher.stop();
  await receiver.close();
});

it("[row 67] B's own key does all of that", async () => {
  for (const { kind, call } of Object.values(ROUTES)) {
    const ids = {
      event: b.events[1]!.id,
      delivery: b.events[1]!.deliveries[0]!.id,
      endpoint: b.endpoint.id,
      key: b.key.id,
      consumer: b.consumer.id,
    };
    expect((await call(b.client, ids[kind])).status).toBeLessThan(300);
  }
});
