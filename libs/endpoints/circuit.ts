import type { Queryable } from '#runtime';

/** Whether deliveries to an endpoint go out now: `open` holds them, `half_open` lets one probe through. */
export type CircuitState = 'closed' | 'open' | 'half_open';

/** What dispatchers share about an endpoint's failures. */
export interface Circuit {
  readonly state: CircuitState;
  readonly consecutiveFailures: number;
  readonly openUntil: Date | null;
  /** Since when it has done nothing but fail. */
  readonly failingSince: Date | null;
  /** Until when the receiver asked to be left alone. */
  readonly heldUntil: Date | null;
}

const CLOSED: Circuit = {
  state: 'closed',
  consecutiveFailures: 0,
  openUntil: null,
  failingSince: null,
  heldUntil: null,
};

const READ = `
select
  case
    when state = 'closed' then 'closed'
    when open_until <= now() or probe_until > now() then 'half_open'
    else 'open'
  end as "state",
  consecutive_failures as "consecutiveFailures",
  open_until as "openUntil",
  failing_since as "failingSince",
  case when held_until > now() then held_until end as "heldUntil"
from waybill.circuits
where tenant_id = $1 and endpoint_id = $2
`;

/** The circuit of an endpoint; one that never failed has none yet, which is a closed one. */
export async function readCircuit(db: Queryable, tenantId: string, endpointId: string): Promise<Circuit> {
  const { rows } = await db.query<{ [Field in keyof Circuit]: Circuit[Field] }>({
    text: READ,
    values: [tenantId, endpointId],
  });
  return rows[0] ?? CLOSED;
}

const CLOSE = `
update waybill.circuits
set
  state = 'closed',
  consecutive_failures = 0,
  open_until = null,
  probe_token = null,
  probe_until = null,
  probe_event_id = null,
  closed_at = case when state = 'open' then now() else closed_at end
where tenant_id = $1 and endpoint_id = $2 and (state = 'open' or consecutive_failures > 0)
`;

/** Lets deliveries of an endpoint go out again, as it no longer has a circuit; what else was learned stays. */
export async function closeCircuit(tx: Queryable, tenantId: string, endpointId: string): Promise<void> {
  await tx.query({ text: CLOSE, values: [tenantId, endpointId] });
}

const FORGET = `
update waybill.circuits
set failing_since = null, held_until = null, gone_at = null
where tenant_id = $1 and endpoint_id = $2
`;

/** Forgets all failures of an endpoint, and that it asked to be left alone: somebody says that it works again. */
export async function resetCircuit(tx: Queryable, tenantId: string, endpointId: string): Promise<void> {
  await closeCircuit(tx, tenantId, endpointId);
  await tx.query({ text: FORGET, values: [tenantId, endpointId] });
}

const DELETE = `
delete from waybill.circuits
where tenant_id = $1 and endpoint_id = $2
`;

/** Takes away the circuit of an endpoint that goes, so that what it is still owed is not held but cancelled. */
export async function deleteCircuit(tx: Queryable, tenantId: string, endpointId: string): Promise<void> {
  await tx.query({ text: DELETE, values: [tenantId, endpointId] });
}
