import type { AcceptedEvent } from '#outbox';
import { formatId, formatIdOrNull, type AppError } from '#runtime';
import { toProblem } from '../http/to-problem.js';
import { isRefused, type ItemResult, type Stored } from './store-events.js';

/** The answer to a publish, first or repeated. */
export function acceptedView(event: AcceptedEvent) {
  return {
    id: formatId('event', event.id),
    consumer_id: formatIdOrNull('consumer', event.consumerId),
    event_type: event.eventType,
    created_at: event.createdAt.toISOString(),
    deliveries: event.deliveries.map(({ id, endpointId, state }) => ({
      id: formatId('delivery', id),
      endpoint_id: formatId('endpoint', endpointId),
      state,
    })),
  };
}

/** An event in the answer to a batch that was stored whole: whether it was stored now or is a repeat. */
export function markedView(stored: Stored) {
  return { ...acceptedView(stored.event), status: statusOf(stored) };
}

/** What became of one item of a batch that is taken item by item. */
export function itemView(result: ItemResult, index: number, requestId: string) {
  if (isRefused(result)) return { index, status: 'refused' as const, problem: problemOf(result, requestId) };
  return { index, status: statusOf(result), event: acceptedView(result.event) };
}

function statusOf({ repeated }: Stored): 'accepted' | 'repeated' {
  return repeated ? 'repeated' : 'accepted';
}

function problemOf(error: AppError, requestId: string) {
  return toProblem(error, requestId).body;
}
