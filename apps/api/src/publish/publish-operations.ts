import type { Scope } from '#tenants';
import type { OperationText } from '../http/operation.js';

/** What a route ahead of Express says of itself in place of the decorators of a controller. */
export interface PublishOperation extends OperationText {
  readonly route: string;
  readonly status: number;
  readonly scope: Scope;
  readonly requestHeaders: readonly string[];
  readonly responseHeaders: readonly string[];
}

/** The scope that lets a key publish. */
export const PUBLISH_SCOPE: Scope = 'events:write';

/** The operations of the publish road; an id is also the name of the function that answers it. */
export const PUBLISH_OPERATIONS: readonly PublishOperation[] = [
  {
    id: 'publishEvent',
    route: '/v1/events',
    summary: 'Publish an event',
    description:
      'Stores the event with everything owed for it in one commit, then answers. The bytes of `payload` are stored, ' +
      'signed and sent exactly as they came.',
    status: 201,
    scope: PUBLISH_SCOPE,
    requestHeaders: ['idempotency-key'],
    responseHeaders: ['location', 'idempotency-replayed'],
  },
  {
    id: 'publishBatch',
    route: '/v1/events/batch',
    summary: 'Publish many events',
    description:
      'Stores what it stores in one commit: with `all_or_nothing` every event or none (201), with `per_item` every good ' +
      'event, and one result for each in order (200).',
    status: 201,
    scope: PUBLISH_SCOPE,
    requestHeaders: [],
    responseHeaders: ['idempotency-replayed'],
  },
];
