import { expect } from 'vitest';

import type { Platform } from './platform.js';
import { drain } from './wait-for.js';

interface DeliveryRow {
  wire_id: string;
  state: string;
  attempt_count: number;
  numbers: number[];
  replays: number;
  dead_letters: number;
}

const READ_DELIVERIES = `
select 'dlv_' || replace(d.id::text, '-', '') as wire_id, d.state, d.attempt_count,
  array(select a.number from waybill.attempts a
   where a.tenant_id = d.tenant_id and a.event_id = d.event_id and a.endpoint_id = d.endpoint_id order by a.number) as numbers,
  (select count(*)::integer from waybill.replays r
   where r.tenant_id = d.tenant_id and r.event_id = d.event_id and r.endpoint_id = d.endpoint_id) as replays,
  (select count(*)::integer from waybill.dead_letters l
   where l.tenant_id = d.tenant_id and l.event_id = d.event_id and l.endpoint_id = d.endpoint_id and l.resolved_at is null) as dead_letters
from waybill.deliveries d
where d.tenant_id = $1
`;

/**
 * The check of every case: nothing is owed any more; each delivery is in a terminal state, with a history as long as
 * its count and no longer than its cycles allow; the receivers saw no more requests of it than attempts were counted;
 * a succeeded one was seen; exactly the dead have a dead letter that is not resolved; no process ended by itself.
 */
export async function expectDrained(
  platform: Platform,
  options: { readonly attemptLimit: number; readonly timeoutMs?: number },
): Promise<void> {
  await drain(platform.pool, options.timeoutMs);
  const { rows } = await platform.pool.query<DeliveryRow>(READ_DELIVERIES, [platform.tenant.tenantId]);
  const faults = rows.flatMap((row) => {
    const requests = platform.receivers.flatMap((receiver) => receiver.requestsFor(row.wire_id)).length;
    const broken = {
      'is not in a terminal state': !['succeeded', 'dead', 'cancelled'].includes(row.state),
      'has a history with gaps': row.numbers.some((number, index) => number !== index + 1),
      'has a history of another length than its count': row.numbers.length !== row.attempt_count,
      'was tried too often': row.attempt_count > options.attemptLimit * (1 + row.replays),
      'was requested more often than counted': requests > row.attempt_count,
      'succeeded unseen': row.state === 'succeeded' && requests === 0,
      'has not one dead letter if dead, none otherwise': row.dead_letters !== (row.state === 'dead' ? 1 : 0),
    };
    return Object.entries(broken)
      .filter(([, isBroken]) => isBroken)
      .map(([what]) => `${what}: ${JSON.stringify(row)}, ${requests} requests`);
  });
  expect(faults).toEqual([]);
  expectNoneDied(platform);
}

/** Every process still runs, or was killed or stopped by the test. */
export function expectNoneDied({ apps }: Pick<Platform, 'apps'>): void {
  for (const app of apps) {
    const { process: child } = app;
    const byItself = (child.exitCode ?? 0) !== 0 || !['SIGKILL', null].includes(child.signalCode);
    expect(byItself ? app.logText() : '').toBe('');
  }
}
