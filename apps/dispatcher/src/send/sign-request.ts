import type { KeyObject } from 'node:crypto';
import type { ClaimedDelivery } from '#outbox';
import { formatId } from '#runtime';
import { sign } from '#signing';

/** What goes to the receiver: the payload's exact bytes and headers over exactly those. */
export interface SignedRequest {
  readonly headers: readonly (readonly [string, string])[];
  readonly body: Buffer;
}

/**
 * Signs one attempt by Standard Webhooks 1.0.0: `webhook-id` is the delivery id, the same on every attempt and
 * replay; `webhook-timestamp` is this attempt's, in seconds; one signature per live secret.
 */
export function signRequest(
  delivery: ClaimedDelivery,
  options: { readonly keys: readonly KeyObject[]; readonly nowMs: number; readonly userAgent: string },
): SignedRequest {
  const id = formatId('delivery', delivery.deliveryId);
  const timestampSeconds = Math.floor(options.nowMs / 1000);
  return {
    body: delivery.payload,
    headers: [
      ['content-type', delivery.contentType],
      ['user-agent', options.userAgent],
      ['webhook-id', id],
      ['webhook-timestamp', String(timestampSeconds)],
      ['webhook-signature', sign({ id, timestampSeconds, body: delivery.payload, keys: options.keys })],
      ['idempotency-key', id],
      ['waybill-event-id', formatId('event', delivery.eventId)],
      ['waybill-event-type', delivery.eventType],
      ['waybill-attempt', String(delivery.attemptNumber)],
    ],
  };
}
