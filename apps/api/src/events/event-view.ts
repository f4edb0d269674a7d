import { formatId, formatIdOrNull } from '#runtime';
import type { EventSummary, StoredEvent } from '#outbox';
import { deliveryView } from '../deliveries/delivery-view.js';

/** An event in a list. */
export function eventView(event: EventSummary) {
  return {
    id: formatId('event', event.id),
    consumer_id: formatIdOrNull('consumer', event.consumerId),
    event_type: event.eventType,
    created_at: event.createdAt.toISOString(),
    not_before: event.notBefore?.toISOString() ?? null,
    metadata: event.metadata,
    target_count: event.targetCount,
    unfilterable: event.unfilterable,
    payload_bytes: event.payloadBytes,
  };
}

/** One event as JSON text, its payload spliced in byte for byte, as it was published and is sent. */
export function eventDocument(event: StoredEvent): Buffer {
  const view = {
    ...eventView(event),
    content_type: event.contentType,
    deliveries: event.deliveries.map(deliveryView),
  };
  if (!/^application\/json\b/i.test(event.contentType)) {
    return Buffer.from(JSON.stringify({ ...view, payload_base64: event.payload.toString('base64') }));
  }
  const head = JSON.stringify(view).slice(0, -1);
  return Buffer.concat([Buffer.from(`${head},"payload":`), event.payload, Buffer.from('}')]);
}
