import type { DeadReason, DeliveryState } from './types.js';

/**
 * Whether an endpoint holds back what it is owed, over the aliases p, t (its tenant) and c: by its status, its tenant's
 * suspension, an open circuit, or a Retry-After. Never null, though most endpoints have no circuit row.
 */
export const HOLDS = `(p.deleted_at is null and (
      p.status <> 'enabled'
      or t.suspended_at is not null
      or (c.state is not distinct from 'open' and p.circuit_failures is distinct from 0)
      or coalesce(c.held_until > now(), false)))`;

/**
 * The state a delivery is shown in, over the aliases d, q, p and c of DELIVERY_TABLES: the stored one, unless its claim
 * or its endpoint says more about what is still owed.
 */
export const SHOWN_STATE = `case
    when d.state not in ('pending', 'failed') then d.state
    when q.lease_until is not null then 'in_progress'
    when ${HOLDS} then 'held'
    else d.state
  end`;

/**
 * What SHOWN_STATE needs beside d and p: the tenant, and where there are any, the queue row and the endpoint's circuit.
 * They go by p's tenant, so that `= $1` on it bounds them all; `any($1)` bounds only what it stands on, so that a
 * statement for several tenants has it put on each.
 */
export const standingJoins = (tenants?: 'any($1)'): string => {
  const among = (column: string): string => (tenants === undefined ? '' : `${column} = ${tenants} and `);
  return `
left join waybill.tenants t on ${among('t.id')}t.id = p.tenant_id
left join waybill.delivery_queue q on ${among('q.tenant_id')}q.tenant_id = p.tenant_id and q.event_id = d.event_id and q.endpoint_id = d.endpoint_id
left join waybill.circuits c on ${among('c.tenant_id')}c.tenant_id = p.tenant_id and c.endpoint_id = p.id`;
};

/** The same for the one tenant of `$1`. */
export const STANDING_JOINS = standingJoins();

/**
 * The columns of a delivery as it is shown, over the aliases of DELIVERY_TABLES. What is owed is counted
 * and timed by its queue row; the delivery's own row catches up when that one goes.
 */
export const DELIVERY_COLUMNS = `
  d.id, d.event_id, d.endpoint_id, e.consumer_id, e.event_type,
  ${SHOWN_STATE} as state,
  coalesce(q.attempt_count, d.attempt_count) as attempt_count,
  case when q.lease_until is null then q.due_at end as next_attempt_at,
  d.last_status_code, d.last_error_kind, case when d.state = 'dead' then l.reason end as dead_reason,
  d.created_at, d.expires_at, d.finished_at`;

/** Where DELIVERY_COLUMNS come from. */
export const DELIVERY_TABLES = `
waybill.deliveries d
join waybill.events e on e.tenant_id = d.tenant_id and e.id = d.event_id
join waybill.endpoints p on p.tenant_id = d.tenant_id and p.id = d.endpoint_id${STANDING_JOINS}
left join waybill.dead_letters l on l.tenant_id = d.tenant_id and l.event_id = d.event_id and l.endpoint_id = d.endpoint_id`;

/** A delivery as it is shown. */
export interface DeliveryView {
  readonly id: string;
  readonly eventId: string;
  readonly endpointId: string;
  /** Null for a delivery to an endpoint of the tenant itself. */
  readonly consumerId: string | null;
  readonly eventType: string;
  readonly state: DeliveryState;
  readonly attemptCount: number;
  /** When the next attempt is due; null while one is under way and when none is owed. */
  readonly nextAttemptAt: Date | null;
  readonly lastStatusCode: number | null;
  readonly lastErrorKind: string | null;
  /** Why it died; null for one that is not dead. */
  readonly deadReason: DeadReason | null;
  readonly createdAt: Date;
  readonly expiresAt: Date;
  readonly finishedAt: Date | null;
}

/** DELIVERY_COLUMNS as the driver gives them. */
export interface DeliveryRow {
  id: string;
  event_id: string;
  endpoint_id: string;
  consumer_id: string | null;
  event_type: string;
  state: DeliveryState;
  attempt_count: number;
  next_attempt_at: Date | null;
  last_status_code: number | null;
  last_error_kind: string | null;
  dead_reason: DeadReason | null;
  created_at: Date;
  expires_at: Date;
  finished_at: Date | null;
}

/** A row of DELIVERY_COLUMNS as a delivery. */
export function toDelivery(row: DeliveryRow): DeliveryView {
  return {
    id: row.id,
    eventId: row.event_id,
    endpointId: row.endpoint_id,
    consumerId: row.consumer_id,
    eventType: row.event_type,
    state: row.state,
    attemptCount: row.attempt_count,
    nextAttemptAt: row.next_attempt_at,
    lastStatusCode: row.last_status_code,
    lastErrorKind: row.last_error_kind,
    deadReason: row.dead_reason,
    createdAt: row.created_at,
    expiresAt: row.expires_at,
    finishedAt: row.finished_at,
  };
}
