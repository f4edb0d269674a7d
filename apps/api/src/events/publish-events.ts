import type pg from 'pg';
import { acceptEvents, type AcceptedEvent, type AcceptResult, type EventInput } from '#outbox';
import { AppError, formatId, sqlState } from '#runtime';
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
  const results = await orInProgress(
    inputs,
    acceptEvents(context.acceptPool, inputs, { maxAgeMs: context.config.maxAgeMs }),
  );
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
  const published = await orInProgress(
    inputs,
    inTransaction(context.acceptPool, async (client) => {
      const results = await acceptEvents(client, inputs, { maxAgeMs: context.config.maxAgeMs });
      return toPublished(results, 'events');
    }),
  );
  announce(context, key, inputs, published, startedAt);
  return published;
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

/** Who brings a key and waits too long for a lock waits for that key; without one it is the database's business. */
async function orInProgress<Result>(inputs: readonly EventInput[], work: Promise<Result>): Promise<Result> {
  try {
    return await work;
  } catch (error) {
    const keyed = inputs.some(({ idempotency }) => idempotency !== null);
    if (sqlState(error) !== LOCK_NOT_AVAILABLE || !keyed) throw error;
    throw new AppError('idempotency_key_in_progress', undefined, { retryAfterSeconds: 1, cause: error });
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
    // A connection whose rollback fails is thrown away: its transaction ends with it.
    await client.query('rollback').catch((failure: Error) => {
      broken = failure;
    });
    throw error;
  } finally {
    client.release(broken);
  }
}
