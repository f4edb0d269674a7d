import type pg from 'pg';
import { acceptEvents, type AcceptedEvent, type AcceptResult, type EventInput } from '#outbox';
import { AppError, formatId, isDatabaseUnavailable, sqlState } from '#runtime';
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

const LOCK_NOT_AVAILABLE = '55P03';

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
  const result = input.idempotency === null ? await context.accept(input) : await acceptKeyed(context, input);
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
  settle: (result: AcceptResult, index: number) => ItemResult,
): Promise<readonly ItemResult[]> {
  const startedAt = performance.now();
  const inputs = envelopes.map((envelope) => toInput(key, envelope));
  const results = await untilKeysAreFree(() =>
    inTransaction(context.batchPool, async (client) => {
      return (await acceptEvents(client, inputs, { maxAgeMs: context.config.maxAgeMs })).map(settle);
    }),
  );
  announce(context, key, inputs, results, startedAt);
  return results;
}

/**
 * A keyed event may wait for another request with its key, so it travels alone and on connections of its own; of the
 * requests under one key only one at a time, for a key that hangs must not take them all.
 */
async function acceptKeyed(context: ApiContext, input: EventInput): Promise<AcceptResult> {
  const name = `${input.tenantId} ${input.idempotency!.key}`;
  const options = { maxAgeMs: context.config.maxAgeMs };
  const turn = await context.keyTurns.take(name, KEY_WAIT_MS, () =>
    untilKeysAreFree(() => acceptEvents(context.keyedPool, [input], options)),
  );
  if (turn === null) throw new AppError('idempotency_key_in_progress', undefined, { retryAfterSeconds: 1 });
  return turn.result[0]!;
}

function toInput(key: KeyHolder, envelope: Envelope): EventInput {
  return {
    tenantId: key.tenantId,
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
  if (result.kind !== 'conflict') return { event: result.event, repeated: result.kind === 'repeated' };
  if (index === null) return new AppError('idempotency_conflict');
  const place = `events[${index}]`;
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
      tenant_id: formatId('tenant', key.tenantId),
      api_key_id: formatId('api_key', key.keyId),
      deliveries: event.deliveries.length,
      bytes: inputs[index]!.payload.length,
      duration_ms: durationMs,
    });
  });
}

/** How long a keyed request waits, in turns of the lane's lock timeout, for another one with its key to commit. */
const KEY_WAIT_MS = 2_000;

/** Between its turns a waiting request holds no connection: one stuck key cannot keep the lane from the others. */
async function untilKeysAreFree<Result>(work: () => Promise<Result>): Promise<Result> {
  const deadline = performance.now() + KEY_WAIT_MS;
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (sqlState(error) !== LOCK_NOT_AVAILABLE) throw error;
      if (performance.now() < deadline) continue;
      throw new AppError('idempotency_key_in_progress', undefined, { retryAfterSeconds: 1, cause: error });
    }
  }
}

async function inTransaction<Result>(
  pool: pg.Pool,
  work: (client: pg.PoolClient) => Promise<Result>,
): Promise<Result> {
  const client = await pool.connect();
  let broken: Error | undefined;
  try {
    await client.query('begin');
    const result = await work(client);
    await client.query('commit');
    return result;
  } catch (error) {
    // A connection that broke, or that cannot even roll back, is thrown away: its transaction ends with it.
    if (isDatabaseUnavailable(error)) broken = error as Error;
    else await client.query('rollback').catch((failure: Error) => (broken = failure));
    throw error;
  } finally {
    client.release(broken);
  }
}
