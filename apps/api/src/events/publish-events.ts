import type pg from 'pg';
import { acceptEvents, type AcceptedEvent, type AcceptResult, type EventInput } from '#outbox';
import { AppError, formatId, isDatabaseUnavailable, sqlState } from '#runtime';
import type { KeyHolder } from '#tenants';
import type { ApiContext } from '../api-context.js';
import { fingerprint } from './fingerprint.js';
import type { Envelope } from './read-envelope.js';

/** A stored event, and whether it was stored by an earlier request under the same key. */
export interface Published {
  readonly event: AcceptedEvent;
  readonly repeated: boolean;
}

const LOCK_NOT_AVAILABLE = '55P03';

/** Stores one event and what is owed for it; when this returns, both are committed. */
export async function publishEvent(
  context: ApiContext,
  key: KeyHolder,
  envelope: Envelope,
): Promise<Published> {
  const startedAt = performance.now();
  const inputs = [toInput(key, envelope)];
  const results =
    envelope.idempotencyKey === null
      ? [await context.accept(inputs[0]!)]
      : await acceptKeyed(context, key.tenantId, inputs);
  const published = toPublished(results, '');
  announce(context, key, inputs, published, startedAt);
  return published[0]!;
}

/** Stores all the events of a batch, or none: a conflict of one takes the others back. */
export async function publishBatch(
  context: ApiContext,
  key: KeyHolder,
  envelopes: readonly Envelope[],
): Promise<readonly Published[]> {
  const startedAt = performance.now();
  const inputs = envelopes.map((envelope) => toInput(key, envelope));
  const published = await untilKeysAreFree(() =>
    inTransaction(context.batchPool, async (client) => {
      const results = await acceptEvents(client, inputs, { maxAgeMs: context.config.maxAgeMs });
      return toPublished(results, 'events');
    }),
  );
  announce(context, key, inputs, published, startedAt);
  return published;
}

/**
 * A keyed event may wait for another request with its key, so it travels alone and on connections of its own; of the
 * requests under one key only one at a time, for a key that hangs must not take them all.
 */
async function acceptKeyed(
  context: ApiContext,
  tenantId: string,
  inputs: readonly EventInput[],
): Promise<AcceptResult[]> {
  const name = `${tenantId} ${inputs[0]!.idempotency!.key}`;
  const turn = await context.keyTurns.take(name, KEY_WAIT_MS, () =>
    untilKeysAreFree(() => acceptEvents(context.keyedPool, inputs, { maxAgeMs: context.config.maxAgeMs })),
  );
  if (turn === null) throw new AppError('idempotency_key_in_progress', undefined, { retryAfterSeconds: 1 });
  return turn.result;
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

function toPublished(results: readonly AcceptResult[], list: string): Published[] {
  return results.map((result, index) => {
    if (result.kind !== 'conflict') return { event: result.event, repeated: result.kind === 'repeated' };
    if (list === '') throw new AppError('idempotency_conflict');
    throw new AppError(
      'idempotency_conflict',
      `The idempotency key of ${list}[${index}] was used for another event.`,
      {
        details: [{ field: `${list}[${index}].idempotency_key`, reason: 'conflict' }],
      },
    );
  });
}

/** After the commit and off the answer's path: the counts, the log line of each new event, and a hint. */
function announce(
  context: ApiContext,
  key: KeyHolder,
  inputs: readonly EventInput[],
  published: readonly Published[],
  startedAt: number,
): void {
  const durationMs = Math.round((performance.now() - startedAt) * 100) / 100;
  published.forEach(({ event, repeated }, index) => {
    if (repeated) return;
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
