import type { AcceptedEvent, AcceptResult, EventInput } from '#outbox';
import { AppError, formatId, formatIdOrNull } from '#runtime';
import type { KeyHolder } from '#tenants';
import type { ApiContext } from '../api-context.js';
import { fingerprint } from './fingerprint.js';
import type { Envelope } from './read-envelope.js';

/** A stored event, and whether it was stored by an earlier request under the same key. */
export interface Stored {
  readonly event: AcceptedEvent;
  readonly repeated: boolean;
}

/** What became of one item of a batch that is taken item by item. */
export type ItemResult = Stored | AppError;

/** Whether an item was refused, for what it is or for its key. */
export function isRefused(result: Envelope | ItemResult): result is AppError {
  return result instanceof AppError;
}

/** Whether an item stands for an event that was stored before. */
export function isRepeated(result: ItemResult): boolean {
  return !isRefused(result) && result.repeated;
}

/** Stores one event and what is owed for it; when this returns, both are committed. */
export async function storeEvent(context: ApiContext, key: KeyHolder, envelope: Envelope): Promise<Stored> {
  const startedAt = performance.now();
  const input = toInput(key, envelope);
  const { intake } = context;
  const result = await (input.idempotency !== null
    ? intake.acceptKeyed(input, key.hasFilters)
    : key.hasFilters
      ? intake.acceptFiltered(input)
      : intake.accept(input));
  const stored = toStored(result, null);
  if (isRefused(stored)) throw stored;
  announce(context, key, [input], [stored], startedAt);
  return stored;
}

/** Stores all the events of a batch, or none: a conflict of one takes the others back. */
export async function storeAll(
  context: ApiContext,
  key: KeyHolder,
  envelopes: readonly Envelope[],
): Promise<readonly Stored[]> {
  const results = await acceptBatch(context, key, envelopes, (result, index) => {
    const stored = toStored(result, index);
    if (isRefused(stored)) throw stored;
    return stored;
  });
  return results as readonly Stored[];
}

/** Stores every event of a batch that is good, all of them in one commit, and says of each what became of it. */
export async function storeEach(
  context: ApiContext,
  key: KeyHolder,
  items: readonly (Envelope | AppError)[],
): Promise<readonly ItemResult[]> {
  const good = items.flatMap((item, index) => (isRefused(item) ? [] : [{ envelope: item, index }]));
  if (good.length === 0) return items as readonly AppError[];
  const envelopes = good.map(({ envelope }) => envelope);
  const stored = await acceptBatch(context, key, envelopes, (result, place) =>
    toStored(result, good[place]!.index),
  );
  const byIndex = new Map(good.map(({ index }, place) => [index, stored[place]!]));
  return items.map((item, index) => byIndex.get(index) ?? (item as AppError));
}

async function acceptBatch(
  context: ApiContext,
  key: KeyHolder,
  envelopes: readonly Envelope[],
  settle: (result: AcceptResult, place: number) => ItemResult,
): Promise<readonly ItemResult[]> {
  const startedAt = performance.now();
  const inputs = envelopes.map((envelope) => toInput(key, envelope));
  const results = await context.intake.acceptBatch(inputs, settle);
  announce(context, key, inputs, results, startedAt);
  return results;
}

const REFUSALS = { conflict: 'idempotency_conflict', consumer_not_found: 'consumer_not_found' } as const;

function toInput(key: KeyHolder, envelope: Envelope): EventInput {
  return {
    tenantId: key.tenantId,
    consumer: envelope.consumer,
    eventType: envelope.eventType,
    payload: envelope.payload,
    contentType: 'application/json',
    metadata: envelope.metadata,
    notBefore: envelope.notBefore,
    idempotency:
      envelope.idempotencyKey === null
        ? null
        : { key: envelope.idempotencyKey, fingerprint: fingerprint(envelope) },
  };
}

function toStored(result: AcceptResult, index: number | null): ItemResult {
  // Deleted since the key was looked up: by now it is no key.
  if (result.kind === 'tenant_deleted') return new AppError('invalid_api_key');
  if (result.kind === 'accepted' || result.kind === 'repeated') {
    return { event: result.event, repeated: result.kind === 'repeated' };
  }
  if (index === null) return new AppError(REFUSALS[result.kind]);
  const place = `events[${index}]`;
  if (result.kind === 'consumer_not_found') {
    return new AppError('consumer_not_found', `There is no consumer that ${place} could be for.`, {
      details: [{ field: `${place}.consumer`, reason: 'invalid' }],
    });
  }
  return new AppError('idempotency_conflict', `The idempotency key of ${place} was used for another event.`, {
    details: [{ field: `${place}.idempotency_key`, reason: 'conflict' }],
  });
}

/** After the commit and off the answer's path: the counts, the log line of each new event, and a hint. */
function announce(
  context: ApiContext,
  key: KeyHolder,
  inputs: readonly EventInput[],
  results: readonly ItemResult[],
  startedAt: number,
): void {
  const durationMs = Math.round((performance.now() - startedAt) * 100) / 100;
  results.forEach((result, index) => {
    if (isRefused(result) || result.repeated) return;
    const { event } = result;
    context.metrics.eventsAccepted.inc();
    context.hints.notify(event.deliveries.map(({ endpointId }) => ({ tenantId: key.tenantId, endpointId })));
    context.logger.info({
      event: 'event.accepted',
      event_id: formatId('event', event.id),
      event_type: event.eventType,
      consumer_id: formatIdOrNull('consumer', event.consumerId),
      tenant_id: formatId('tenant', key.tenantId),
      api_key_id: formatId('api_key', key.keyId),
      deliveries: event.deliveries.length,
      bytes: inputs[index]!.payload.length,
      duration_ms: durationMs,
    });
  });
}
