import { expect } from 'vitest';

import type { ApiClient } from './api-client.js';
import type { ApiStage } from './api-stage.js';
import type { rowCounts } from './row-counts.js';

/** A request that would create something. */
export interface CreationAsk {
  readonly path: string;
  readonly body?: object;
  /** Whose request it is, where that is not the stage's tenant. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** The key of the operator, with which the apis of such a stage boot. */
export const OPERATOR_KEY = 'operator-key-of-the-tests-0123456789';

const AS_OPERATOR = { authorization: `Bearer ${OPERATOR_KEY}` };

/** A route that creates, as the tests of rows 10 to 14 use it. */
export interface CreatingRoute {
  readonly status: number;
  /** What it adds a row to. */
  readonly table: keyof Awaited<ReturnType<typeof rowCounts>>;
  /** Makes ready a request that succeeds once, and that no other content is the same as. */
  ask(stage: ApiStage): Promise<CreationAsk>;
  /** Makes ready one that is refused with a 4xx until `mend` has run. */
  refused(stage: ApiStage): Promise<CreationAsk & { readonly mend: () => Promise<unknown> }>;
  /** Fields of the answer that are shown once. */
  readonly secrets: readonly string[];
  /** Its idempotency keys are the operator's, and no tenant's. */
  readonly isOperators?: true;
}

/** Every route that takes an Idempotency-Key, by its name: a new one gets its entry here. */
export const CREATING_ROUTES: Readonly<Record<string, CreatingRoute>> = {
  'POST /v1/endpoints': {
    status: 201,
    table: 'endpoints',
    ask: async (stage) => ({ path: '/v1/endpoints', body: quietEndpoint(stage) }),
    refused: async (stage) => {
      const operator = { url: stage.receiver.url, event_types: ['waybill.endpoint.gone'] };
      return {
        path: '/v1/endpoints',
        body: operator,
        mend: () => Promise.resolve(operator.event_types.splice(0, 1, 'a')),
      };
    },
    secrets: ['secret'],
  },
  'POST /v1/consumers': {
    status: 201,
    table: 'consumers',
    ask: () => Promise.resolve({ path: '/v1/consumers', body: { uid: `made ${(made += 1)}` } }),
    refused: () => {
      const body = { uid: `made ${(made += 1)}`, name: 'x'.repeat(201) };
      return Promise.resolve({
        path: '/v1/consumers',
        body,
        mend: () => Promise.resolve((body.name = 'short')),
      });
    },
    secrets: [],
  },
  'POST /v1/deliveries/:id/replay': {
    status: 202,
    table: 'replays',
    async ask(stage) {
      const { deliveryId } = await pendingDelivery(stage);
      await cancel(stage.client, deliveryId);
      return { path: `/v1/deliveries/${deliveryId}/replay` };
    },
    async refused(stage) {
      const { deliveryId } = await pendingDelivery(stage);
      return { path: `/v1/deliveries/${deliveryId}/replay`, mend: () => cancel(stage.client, deliveryId) };
    },
    secrets: [],
  },
  'POST /v1/events/:id/deliveries': {
    status: 201,
    table: 'deliveries',
    async ask(stage) {
      const { eventId } = await pendingDelivery(stage);
      const endpoint = await stage.addEndpoint(quietEndpoint(stage));
      return { path: `/v1/events/${eventId}/deliveries`, body: { endpoint_id: endpoint.id } };
    },
    async refused(stage) {
      const { eventId } = await pendingDelivery(stage);
      const { id } = await stage.addEndpoint({ ...quietEndpoint(stage), status: 'disabled' });
      const mend = () => stage.client.patch(`/v1/endpoints/${id}`, { status: 'enabled' });
      return { path: `/v1/events/${eventId}/deliveries`, body: { endpoint_id: id }, mend };
    },
    secrets: [],
  },
  'POST /v1/endpoints/:id/secrets': {
    status: 201,
    table: 'endpoint_secrets',
    ask: async (stage) => ({ path: await secretsPath(stage), body: { overlap_seconds: 60 } }),
    async refused(stage) {
      const body = { overlap_seconds: -1 };
      const mend = () => Promise.resolve((body.overlap_seconds = 60));
      return { path: await secretsPath(stage), body, mend };
    },
    secrets: ['secret'],
  },
  'POST /v1/keys': {
    status: 201,
    table: 'api_keys',
    ask: async () => ({ path: '/v1/keys', body: { name: `key ${(made += 1)}`, scopes: ['events:read'] } }),
    refused: async () => {
      const body = { name: `key ${(made += 1)}`, scopes: ['none'] };
      return { path: '/v1/keys', body, mend: () => Promise.resolve((body.scopes = ['keys'])) };
    },
    secrets: ['key'],
  },
  'POST /v1/keys/:id/rotate': {
    status: 201,
    table: 'api_keys',
    ask: async (stage) => ({ path: await rotationPath(stage) }),
    async refused(stage) {
      const body = { overlap_seconds: -1 };
      const mend = () => Promise.resolve((body.overlap_seconds = 60));
      return { path: await rotationPath(stage), body, mend };
    },
    secrets: ['key'],
  },
  'POST /v1/tenants': {
    status: 201,
    table: 'tenants',
    ask: async () => ({ path: '/v1/tenants', body: { name: `tenant ${(made += 1)}` }, headers: AS_OPERATOR }),
    refused: async () => {
      const body = { name: '' };
      const mend = () => Promise.resolve((body.name = 'named'));
      return { path: '/v1/tenants', body, headers: AS_OPERATOR, mend };
    },
    secrets: [],
    isOperators: true,
  },
};

let made = 0;

/** An endpoint that gets no event, unlike every other. */
function quietEndpoint(stage: ApiStage): object {
  return { url: `${stage.receiver.url}/quiet/${(made += 1)}`, event_types: ['never.sent'] };
}

async function secretsPath(stage: ApiStage): Promise<string> {
  return `/v1/endpoints/${(await stage.addEndpoint(quietEndpoint(stage))).id}/secrets`;
}

/** The rotation of a key that is there for nothing else. */
async function rotationPath({ client }: ApiStage): Promise<string> {
  const body = { name: `key ${(made += 1)}`, scopes: ['events:read'] };
  return `/v1/keys/${(await client.post<{ id: string }>('/v1/keys', body)).body.id}/rotate`;
}

/** An event with one delivery that waits: no dispatcher runs on such a stage. */
async function pendingDelivery(stage: ApiStage): Promise<{ eventId: string; deliveryId: string }> {
  const eventType = `wanted.n${(made += 1)}`;
  await stage.addEndpoint({ event_types: [eventType] });
  const { body } = await stage.client.publish<{ id: string; deliveries: { id: string }[] }>(eventType, {});
  return { eventId: body.id, deliveryId: body.deliveries[0]!.id };
}

async function cancel(client: ApiClient, deliveryId: string): Promise<void> {
  expect(await client.post(`/v1/deliveries/${deliveryId}/cancel`)).toMatchObject({ status: 200 });
}
