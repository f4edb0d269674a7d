import type { Queryable } from '#runtime';
import { REPLICA_SILENT_MS } from './keep-replica.js';
import { SHOWN_STATE, STANDING_JOINS } from './delivery-row.js';
import { toAttempt, type AttemptRow, type AttemptView } from './read-delivery.js';
import type { DeadReason, DeliveryState } from './types.js';

/** As many of the deliveries that are due before one are counted, and no more. */
export const AHEAD_MAX = 1_000;

/**
 * All that says where a delivery stands, in one snapshot. What is due before it is counted by the bounds of the claim,
 * which only the claim's index can serve, and no further than is worth saying.
 */
const READ_STANDING = `
select d.id, d.event_id, d.endpoint_id, ${SHOWN_STATE} as state,
  coalesce(q.attempt_count, d.attempt_count) as attempt_count, d.expires_at, d.finished_at,
  case when d.state = 'dead' then l.reason end as dead_reason,
  e.not_before, q.due_at, q.lease_until,
  p.status, p.disabled_reason, p.deleted_at is not null as endpoint_deleted, p.rate_per_second, p.concurrency, p.circuit_failures,
  t.suspended_at is not null as tenant_suspended,
  coalesce(c.state = 'open' and p.circuit_failures is distinct from 0, false) as circuit_open,
  c.consecutive_failures, c.open_until, c.probe_until, c.held_until, c.closed_at,
  r.tokens, r.refilled_at,
  v.living, v.with_room, v.at_tenant_cap, v.at_endpoint_cap, v.full_slots,
  a.number, a.outcome, a.status_code, a.error_kind, a.error, a.response_body, a.started_at, a.duration_ms,
  (select count(*)::integer
   from (
     select from waybill.delivery_queue o
     where o.tenant_id = $1
       and (o.endpoint_id, o.due_at) >= (d.endpoint_id, '-infinity'::timestamptz)
       and (o.endpoint_id, o.due_at) < (d.endpoint_id, q.due_at)
       and o.lease_until is null
     limit ${AHEAD_MAX}
   ) earlier) as ahead,
  now() as read_at
from waybill.deliveries d
join waybill.events e on e.tenant_id = d.tenant_id and e.id = d.event_id
join waybill.endpoints p on p.tenant_id = d.tenant_id and p.id = d.endpoint_id${STANDING_JOINS}
left join waybill.dead_letters l on l.tenant_id = d.tenant_id and l.event_id = d.event_id and l.endpoint_id = d.endpoint_id
left join waybill.rate_tokens r on r.tenant_id = d.tenant_id and r.endpoint_id = d.endpoint_id
left join lateral (
  select h.*
  from waybill.attempts h
  where h.tenant_id = $1 and h.tenant_id = d.tenant_id and h.event_id = d.event_id and h.endpoint_id = d.endpoint_id
  order by h.number desc
  limit 1
) a on true
cross join lateral (
  select count(*)::integer as living,
    count(*) filter (where not (w.slots_full or d.tenant_id = any(w.tenants_at_cap) or d.endpoint_id = any(w.endpoints_at_cap)))::integer as with_room,
    count(*) filter (where d.tenant_id = any(w.tenants_at_cap))::integer as at_tenant_cap,
    count(*) filter (where d.endpoint_id = any(w.endpoints_at_cap))::integer as at_endpoint_cap,
    count(*) filter (where w.slots_full)::integer as full_slots
  from waybill.replicas w
  where w.heartbeat_at > now() - interval '${REPLICA_SILENT_MS} milliseconds'
) v
where d.tenant_id = $1
  and d.event_id between waybill.first_of_millisecond($2) and waybill.last_of_millisecond($2)
  and d.id = $2
`;

/** The facts by which a delivery's standing is explained; all times are the database's. */
export interface DeliveryStanding {
  readonly deliveryId: string;
  readonly eventId: string;
  readonly endpointId: string;
  readonly state: DeliveryState;
  readonly deadReason: DeadReason | null;
  readonly attemptCount: number;
  readonly expiresAt: Date;
  readonly finishedAt: Date | null;
  /** The event's own time before which nothing is sent. */
  readonly notBefore: Date | null;
  /** Its row in the queue; null when nothing is owed. */
  readonly queued: { readonly dueAt: Date; readonly leaseUntil: Date | null; readonly ahead: number } | null;
  readonly tenantSuspended: boolean;
  readonly endpoint: {
    readonly status: 'enabled' | 'paused' | 'disabled';
    readonly disabledReason: 'gone' | 'failing' | null;
    readonly deleted: boolean;
    readonly ratePerSecond: number | null;
    readonly concurrency: number | null;
    /** Failures in a row that open its circuit; null for the platform's. */
    readonly circuitFailures: number | null;
  };
  readonly circuit: {
    readonly open: boolean;
    readonly consecutiveFailures: number;
    readonly openUntil: Date | null;
    readonly probeUntil: Date | null;
    /** What the endpoint asked for with Retry-After. */
    readonly heldUntil: Date | null;
    readonly closedAt: Date | null;
  };
  /** What is left of the endpoint's rate; null when it was never used. */
  readonly tokens: { readonly left: number; readonly at: Date } | null;
  /** The dispatchers that live, those among them that could take this delivery, and those that say why they cannot. */
  readonly dispatchers: {
    readonly living: number;
    readonly withRoom: number;
    readonly atTenantCap: number;
    readonly atEndpointCap: number;
    readonly fullSlots: number;
  };
  readonly lastAttempt: AttemptView | null;
  readonly readAt: Date;
}

interface StandingRow extends Omit<AttemptRow, 'number'> {
  id: string;
  event_id: string;
  endpoint_id: string;
  state: DeliveryState;
  attempt_count: number;
  expires_at: Date;
  finished_at: Date | null;
  dead_reason: DeadReason | null;
  not_before: Date | null;
  due_at: Date | null;
  lease_until: Date | null;
  ahead: number;
  status: 'enabled' | 'paused' | 'disabled';
  disabled_reason: 'gone' | 'failing' | null;
  endpoint_deleted: boolean;
  rate_per_second: number | null;
  concurrency: number | null;
  circuit_failures: number | null;
  tenant_suspended: boolean;
  circuit_open: boolean;
  consecutive_failures: number | null;
  open_until: Date | null;
  probe_until: Date | null;
  held_until: Date | null;
  closed_at: Date | null;
  tokens: number | null;
  refilled_at: Date | null;
  living: number;
  with_room: number;
  at_tenant_cap: number;
  at_endpoint_cap: number;
  full_slots: number;
  number: number | null;
  read_at: Date;
}

/** Where the tenant's delivery stands at this moment, or null. */
export async function readStanding(
  db: Queryable,
  tenantId: string,
  deliveryId: string,
): Promise<DeliveryStanding | null> {
  const { rows } = await db.query<StandingRow>({ text: READ_STANDING, values: [tenantId, deliveryId] });
  return rows[0] === undefined ? null : toStanding(rows[0]);
}

function toStanding(row: StandingRow): DeliveryStanding {
  return {
    deliveryId: row.id,
    eventId: row.event_id,
    endpointId: row.endpoint_id,
    state: row.state,
    deadReason: row.dead_reason,
    attemptCount: row.attempt_count,
    expiresAt: row.expires_at,
    finishedAt: row.finished_at,
    notBefore: row.not_before,
    queued: row.due_at && { dueAt: row.due_at, leaseUntil: row.lease_until, ahead: row.ahead },
    tenantSuspended: row.tenant_suspended,
    endpoint: {
      status: row.status,
      disabledReason: row.disabled_reason,
      deleted: row.endpoint_deleted,
      ratePerSecond: row.rate_per_second,
      concurrency: row.concurrency,
      circuitFailures: row.circuit_failures,
    },
    circuit: {
      open: row.circuit_open,
      consecutiveFailures: row.consecutive_failures ?? 0,
      openUntil: row.open_until,
      probeUntil: row.probe_until,
      heldUntil: row.held_until,
      closedAt: row.closed_at,
    },
    tokens: row.tokens === null ? null : { left: row.tokens, at: row.refilled_at! },
    dispatchers: {
      living: row.living,
      withRoom: row.with_room,
      atTenantCap: row.at_tenant_cap,
      atEndpointCap: row.at_endpoint_cap,
      fullSlots: row.full_slots,
    },
    lastAttempt: row.number === null ? null : toAttempt({ ...row, number: row.number }),
    readAt: row.read_at,
  };
}
