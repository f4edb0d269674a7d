import type { KeyHolder } from '#tenants';
import type { ApiContext } from '../api-context.js';
import { refuseQuery, requireScope } from '../auth/authenticate.js';
import { answerError } from '../http/answer-error.js';
import { readBody } from '../http/read-body.js';
import { sendJson } from '../http/send-json.js';
import type { Visit } from '../http/visit.js';
import { acceptedView, itemView, markedView } from './accepted-view.js';
import { idempotencyKeyOf, refuseIdempotencyKey } from './idempotency-key.js';
import { PUBLISH_SCOPE } from './publish-operations.js';
import { orThrow, readBatch } from './read-batch.js';
import { readSingleEvent } from './read-single-event.js';
import { isRepeated, storeAll, storeEach, storeEvent, type ItemResult } from './store-events.js';

/** Answers a visit, whatever happens. */
export type Handle = (visit: Visit) => void;

/** The routes by which events come in, each with what answers it. */
export type PublishRoad = ReadonlyMap<string, Handle>;

/**
 * The way of an event from the bytes of a request to the answer after its commit. It needs nothing of Express, whose
 * share of a request alone is 250 to 300 µs; see docs/adr/0005.
 */
export function createPublishRoad(context: ApiContext): PublishRoad {
  const answered = (publish: (context: ApiContext, visit: Visit) => Promise<void>): Handle => {
    return (visit) => void publish(context, visit).catch((error) => answerError(context, visit, error));
  };
  return new Map([
    ['/v1/events', answered(publishEvent)],
    ['/v1/events/batch', answered(publishBatch)],
  ]);
}

async function publishEvent(context: ApiContext, visit: Visit): Promise<void> {
  const key = await admit(context, visit);
  const envelope = await readSingleEvent(visit.request, context.config);
  const idempotencyKey = idempotencyKeyOf(visit.request);
  const stored = await storeEvent(context, key, { ...envelope, idempotencyKey });
  const view = acceptedView(stored.event);
  sendJson(visit.response, 201, view, { location: `/v1/events/${view.id}`, ...replayed([stored]) });
}

async function publishBatch(context: ApiContext, visit: Visit): Promise<void> {
  const key = await admit(context, visit);
  const bytes = await readBody(visit.request, context.config.batchBytesMax);
  refuseIdempotencyKey(visit.request);
  const { mode, items } = readBatch(bytes, context.config);
  if (mode === 'all_or_nothing') {
    const stored = await storeAll(context, key, items.map(orThrow));
    sendJson(visit.response, 201, { data: stored.map(markedView) }, replayed(stored));
  } else {
    const results = await storeEach(context, key, items);
    const data = results.map((result, index) => itemView(result, index, visit.requestId));
    sendJson(visit.response, 200, { data }, replayed(results));
  }
}

async function admit(context: ApiContext, { request, query }: Visit): Promise<KeyHolder> {
  const key = await context.intake.authenticate(request);
  requireScope(key, PUBLISH_SCOPE);
  refuseQuery(query);
  return key;
}

function replayed(results: readonly ItemResult[]): Record<string, string> {
  return results.every(isRepeated) ? { 'idempotency-replayed': 'true' } : {};
}
