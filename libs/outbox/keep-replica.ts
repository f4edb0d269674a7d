import type { Queryable } from '#runtime';
import { plainArray } from './array-text.js';

/** A dispatcher that was silent for so long is not counted any more. */
export const REPLICA_SILENT_MS = 15_000;

/** Writes the heartbeat, clears away the dead, and counts the living, this one included. */
const KEEP_REPLICA = `
with kept as (
  insert into waybill.replicas (id, started_at, heartbeat_at, tenants_at_cap, endpoints_at_cap, slots_full)
  values ($1, now(), now(), $2, $3, $4)
  on conflict (id) do update
  set heartbeat_at = now(), tenants_at_cap = excluded.tenants_at_cap, endpoints_at_cap = excluded.endpoints_at_cap,
    slots_full = excluded.slots_full
),
cleared as (
  delete from waybill.replicas
  where id <> $1
    and heartbeat_at < now() - interval '1 hour'
)
select count(*)::integer + 1 as living
from waybill.replicas
where id <> $1
  and heartbeat_at > now() - $5 * interval '1 millisecond'
`;

/** What a dispatcher says of itself with each heartbeat. */
export interface ReplicaState {
  readonly tenantsAtCap: readonly string[];
  readonly endpointsAtCap: readonly string[];
  readonly slotsFull: boolean;
}

/** Says that this dispatcher lives, and returns how many do: they share the endpoints' caps. */
export async function keepReplica(db: Queryable, id: string, state: ReplicaState): Promise<number> {
  const { rows } = await db.query<{ living: number }>({
    name: 'keep-replica',
    text: KEEP_REPLICA,
    values: [
      id,
      plainArray(state.tenantsAtCap),
      plainArray(state.endpointsAtCap),
      state.slotsFull,
      REPLICA_SILENT_MS,
    ],
  });
  return rows[0]!.living;
}

/** How many dispatchers live, and whether there is anything for them to deliver. */
export async function measureReplicas(db: Queryable): Promise<{ living: number; isOwing: boolean }> {
  const { rows } = await db.query<{ living: number; isOwing: boolean }>({
    text: `
      select count(*)::integer as "living", exists (select from waybill.delivery_queue) as "isOwing"
      from waybill.replicas
      where heartbeat_at > now() - $1 * interval '1 millisecond'`,
    values: [REPLICA_SILENT_MS],
  });
  return rows[0]!;
}

/** Takes a dispatcher that stops out of the count at once. */
export async function dropReplica(db: Queryable, id: string): Promise<void> {
  await db.query({ name: 'drop-replica', text: 'delete from waybill.replicas where id = $1', values: [id] });
}
