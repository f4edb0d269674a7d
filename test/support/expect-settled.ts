import { expect } from 'vitest';

import type { Stage } from './stage.js';
import { drain } from './wait-for.js';

/** What became of one delivery, as the database tells it. */
export interface SettledDelivery {
  readonly deliveryId: string;
  readonly state: 'succeeded' | 'dead' | 'cancelled';
  readonly attemptCount: number;
  /** Outcomes by attempt number, the first one at 0. */
  readonly outcomes: readonly string[];
}

interface DeliveryRow {
  id: string;
  state: string;
  attempt_count: number;
  dead_letters: number;
  numbers: number[];
  outcomes: string[];
}

const READ_DELIVERIES = `
select d.id, d.state, d.attempt_count,
  (select count(*)::integer from waybill.dead_letters l
   where l.tenant_id = d.tenant_id and l.event_id = d.event_id and l.endpoint_id = d.endpoint_id and l.resolved_at is null) as dead_letters,
  array(select a.number from waybill.attempts a
   where a.tenant_id = d.tenant_id and a.event_id = d.event_id and a.endpoint_id = d.endpoint_id order by a.number) as numbers,
  array(select a.outcome from waybill.attempts a
   where a.tenant_id = d.tenant_id and a.event_id = d.event_id and a.endpoint_id = d.endpoint_id order by a.number) as outcomes
from waybill.deliveries d
where d.tenant_id = $1
`;

/**
 * The check of every case, over three witnesses (what was published, what the receiver saw, what the database says):
 * nothing is owed any more, each published delivery is in a terminal state, its attempts are numbered without a gap
 * and are no more than the limit, the receiver saw no more requests than attempts and each with the published bytes,
 * a success was seen by the receiver, and no dispatcher ended by itself. Returns the deliveries by id.
 */
export async function expectSettled(
  stage: Stage,
  { attemptLimit, timeoutMs = 20_000 }: { readonly attemptLimit: number; readonly timeoutMs?: number },
): Promise<Map<string, SettledDelivery>> {
  await drain(stage.pool, timeoutMs);
  const { rows } = await stage.pool.query<DeliveryRow>(READ_DELIVERIES, [stage.tenantId]);
  const found = new Map(rows.map((row) => [row.id, row]));
  expect([...found.keys()].toSorted()).toEqual(
    stage.published.map(({ deliveryId }) => deliveryId).toSorted(),
  );
  const faults = stage.published.flatMap(({ deliveryId, wireId, payload, endpointId }) => {
    const row = found.get(deliveryId)!;
    const requests = stage.receiver.requestsFor(wireId);
    const isOurs = endpointId === stage.endpointId;
    const broken = {
      'is not in a terminal state': !['succeeded', 'dead', 'cancelled'].includes(row.state),
      'has gaps in its history': row.numbers.some((number, index) => number !== index + 1),
      'has a history of another length than its count': row.numbers.length !== row.attempt_count,
      'was tried too often': row.attempt_count > attemptLimit,
      'was requested more often than counted': requests.length > row.attempt_count,
      'came with other bytes': requests.some(({ body }) => body.toString('utf8') !== payload),
      'succeeded unseen': isOurs && row.state === 'succeeded' && requests.length === 0,
      'is dead without one dead letter, or has one alive':
        row.dead_letters !== (row.state === 'dead' ? 1 : 0),
    };
    return Object.entries(broken)
      .filter(([, isBroken]) => isBroken)
      .map(([what]) => `${wireId} ${what}: ${JSON.stringify(row)}, ${requests.length} requests`);
  });
  expect(faults).toEqual([]);
  for (const { process: child, logText } of stage.dispatchers) {
    const diedByItself = (child.exitCode ?? 0) !== 0 || !['SIGKILL', null].includes(child.signalCode);
    expect(diedByItself ? logText() : '').toBe('');
  }
  return new Map(
    rows.map((row) => [
      row.id,
      {
        deliveryId: row.id,
        state: row.state as SettledDelivery['state'],
        attemptCount: row.attempt_count,
        outcomes: row.outcomes,
      },
    ]),
  );
}
