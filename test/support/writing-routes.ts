import type { ApiStage, CreatedEndpoint } from './api-stage.js';

/** What the paths and bodies of writing routes may name. */
export interface WritingScene {
  readonly stage: ApiStage;
  readonly endpoint: CreatedEndpoint;
  readonly quiet: CreatedEndpoint;
  readonly eventId: string;
  readonly deliveryId: string;
  readonly keyId: string;
  readonly consumerId: string;
  /** A tenant of the operator's, other than the stage's. */
  readonly otherTenantId: string;
}

/** A route that takes a body, as hostile ones are tried on it. */
export interface WritingRoute {
  path(scene: WritingScene): string;
  /** A good body, with every field that holds text; null where there is no such field. */
  body(scene: WritingScene): object | null;
  /** Takes the operator's key. */
  readonly isOperators?: true;
}

const url = ({ stage }: WritingScene): string => `${stage.receiver.url}/written`;

/** Every POST and PATCH route, by its name: a new one gets its entry here. */
export const WRITING_ROUTES: Readonly<Record<string, WritingRoute>> = {
  'POST /v1/events': {
    path: () => '/v1/events',
    body: () => ({ event_type: 'a.b', payload: 1, not_before: '2026-01-01T00:00:00Z', metadata: { a: 'b' } }),
  },
  'POST /v1/events/batch': {
    path: () => '/v1/events/batch',
    body: () => ({
      events: [
        {
          event_type: 'a.b',
          payload: 1,
          not_before: '2026-01-01T00:00:00Z',
          metadata: { a: 'b' },
          idempotency_key: 'k',
        },
      ],
      mode: 'all_or_nothing',
    }),
  },
  'POST /v1/events/match': {
    path: () => '/v1/events/match',
    body: () => ({ event_type: 'a.b', payload: 1, metadata: { a: 'b' } }),
  },
  'POST /v1/consumers': {
    path: () => '/v1/consumers',
    body: () => ({ uid: 'written', name: 'text', metadata: { a: 'b' } }),
  },
  'PATCH /v1/consumers/:id': {
    path: ({ consumerId }) => `/v1/consumers/${consumerId}`,
    body: () => ({ name: 'text', metadata: { a: 'b' } }),
  },
  'POST /v1/endpoints': {
    path: () => '/v1/endpoints',
    body: (scene) => ({ ...endpointBody(scene), secret: `whsec_${Buffer.alloc(32).toString('base64')}` }),
  },
  'PATCH /v1/endpoints/:id': {
    path: ({ endpoint }) => `/v1/endpoints/${endpoint.id}`,
    body: endpointBody,
  },
  'POST /v1/events/:id/deliveries': {
    path: ({ eventId }) => `/v1/events/${eventId}/deliveries`,
    body: ({ quiet }) => ({ endpoint_id: quiet.id }),
  },
  'POST /v1/events/:id/cancel': { path: ({ eventId }) => `/v1/events/${eventId}/cancel`, body: () => null },
  'POST /v1/deliveries/:id/cancel': {
    path: ({ deliveryId }) => `/v1/deliveries/${deliveryId}/cancel`,
    body: () => null,
  },
  'POST /v1/deliveries/:id/replay': {
    path: ({ deliveryId }) => `/v1/deliveries/${deliveryId}/replay`,
    body: () => null,
  },
  'POST /v1/endpoints/:id/secrets': {
    path: ({ endpoint }) => `/v1/endpoints/${endpoint.id}/secrets`,
    body: () => ({ secret: `whsec_${Buffer.alloc(32).toString('base64')}` }),
  },
  'POST /v1/keys': {
    path: () => '/v1/keys',
    body: () => ({ name: 'text', scopes: ['events:read'], expires_at: '2099-01-01T00:00:00Z' }),
  },
  'PATCH /v1/keys/:id': { path: ({ keyId }) => `/v1/keys/${keyId}`, body: () => ({ name: 'text' }) },
  'POST /v1/keys/:id/rotate': { path: ({ keyId }) => `/v1/keys/${keyId}/rotate`, body: () => null },
  'POST /v1/tenants': {
    path: () => '/v1/tenants',
    body: () => ({ name: 'text', first_key: { name: 'text', scopes: ['admin'] } }),
    isOperators: true,
  },
  'PATCH /v1/tenants/:id': { path: tenantPath, body: () => ({ name: 'text' }), isOperators: true },
  'POST /v1/tenants/:id/suspend': {
    path: (scene) => `${tenantPath(scene)}/suspend`,
    body: () => null,
    isOperators: true,
  },
  'POST /v1/tenants/:id/resume': {
    path: (scene) => `${tenantPath(scene)}/resume`,
    body: () => null,
    isOperators: true,
  },
};

function tenantPath({ otherTenantId }: WritingScene): string {
  return `/v1/tenants/${otherTenantId}`;
}

function endpointBody(scene: WritingScene): object {
  return {
    url: url(scene),
    description: 'text',
    event_types: ['a.b', 'c.*'],
    status: 'paused',
    retry: { schedule_seconds: [1], jitter: 'full', retry_on: 'any' },
    circuit: 'off',
  };
}

/** Copies of a body, each with one of its texts, or one of its names, changed by `change`. */
export function withEachText(
  body: unknown,
  change: (text: string) => unknown,
): { at: string; body: unknown }[] {
  if (typeof body === 'string') return [{ at: '', body: change(body) }];
  if (typeof body !== 'object' || body === null) return [];
  return Object.entries(body).flatMap(([name, value]) =>
    withEachText(value, change).map(({ at, body: changed }) => ({
      at: at === '' ? name : `${name}.${at}`,
      body: Array.isArray(body)
        ? body.map((item: unknown, index) => (String(index) === name ? changed : item))
        : { ...body, [name]: changed },
    })),
  );
}
