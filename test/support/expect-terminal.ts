import type { Pool } from 'pg';
import { expect } from 'vitest';

import type { RunningApp } from './apps.js';
import type { Receiver } from './receiver.js';
import { drain } from './wait-for.js';

interface DeliveryRow {
  wire_id: string;
  state: string;
  attempt_count: number;
  attempts: number;
  payload: Buffer;
}

const READ_DELIVERIES = `
select 'dlv_' || replace(d.id::text, '-', '') as wire_id, d.state, d.attempt_count, e.payload,
  (select count(*)::integer from waybill.attempts a
   where a.tenant_id = d.tenant_id and a.event_id = d.event_id and a.endpoint_id = d.endpoint_id) as attempts
from waybill.deliveries d
join waybill.events e on e.tenant_id = d.tenant_id and e.id = d.event_id
`;

const BROKEN_EVENTS = `
select e.id
from waybill.events e
left join waybill.deliveries d on d.tenant_id = e.tenant_id and d.event_id = e.id
group by e.tenant_id, e.id, e.target_count
having count(d.id) <> e.target_count
`;

/**
 * The check of every case, over the whole database of a test: after drain each event has as many deliveries as it was
 * accepted for, each delivery is in a terminal state with a whole history, receivers saw no more requests than
 * attempts and no other bytes than were accepted, and no process ended that the test did not end.
 */
export async function expectTerminal(
  pool: Pool,
  {
    receivers,
    apps,
    attemptLimit,
    timeoutMs = 20_000,
  }: {
    readonly receivers: readonly Receiver[];
    /** Those that should live. */
    readonly apps: readonly RunningApp[];
    readonly attemptLimit: number;
    readonly timeoutMs?: number;
  },
): Promise<void> {
  await drain(pool, timeoutMs);
  expect((await pool.query(BROKEN_EVENTS)).rows).toEqual([]);
  const { rows } = await pool.query<DeliveryRow>(READ_DELIVERIES);
  const faults = rows.flatMap(({ payload, ...row }) => {
    const requests = receivers.flatMap((receiver) => receiver.requestsFor(row.wire_id));
    const broken = {
      'is not terminal': !['succeeded', 'dead', 'cancelled'].includes(row.state),
      'has another history than its count': row.attempts !== row.attempt_count,
      'was tried too often': row.attempt_count > attemptLimit,
      'was requested more often than counted': requests.length > row.attempt_count,
      'came with other bytes': requests.some(({ body }) => !body.equals(payload)),
    };
    return Object.entries(broken)
      .filter(([, isBroken]) => isBroken)
      .map(([what]) => `${what}: ${JSON.stringify(row)}, ${requests.length} requests`);
  });
  expect(faults).toEqual([]);
  for (const app of apps) expectAlive(app);
}

/** A process that ended by itself fails the test with its output. */
export function expectAlive(app: RunningApp): void {
  const ended = app.process.exitCode !== null || app.process.signalCode !== null;
  expect(ended ? app.logText() : 'alive').toBe('alive');
}
