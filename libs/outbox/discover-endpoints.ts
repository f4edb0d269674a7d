import type { Queryable } from '#runtime';
import type { EndpointRef } from './types.js';

/**
 * Due rows in the order (due_at, tenant_id, endpoint_id): what became due since the last look, without touching
 * again what waits behind a held endpoint (0.4 ms where a walk of 100k endpoints took 1 s). The place travels as
 * text, for a double would round its microseconds and skip rows that fall due together.
 */
const DISCOVER_ENDPOINTS = `
select q.tenant_id, q.endpoint_id, q.due_at::text as due_at,
  date_part('epoch', q.due_at) * 1000 as due_at_ms
from waybill.delivery_queue q
where (q.due_at, q.tenant_id, q.endpoint_id)
    > (coalesce($1::timestamptz, now() - $2 * interval '1 millisecond'), $3::uuid, $4::uuid)
  and q.due_at <= now()
  and q.lease_until is null
order by q.due_at, q.tenant_id, q.endpoint_id
limit $5
`;

/** A place in the due order. */
export interface DiscoveryPlace extends EndpointRef {
  readonly dueAt: string;
}

/** Look back so many milliseconds from the database's now, or go on after a place. */
export type DiscoveryStart = { readonly lookBackMs: number } | { readonly after: DiscoveryPlace };

/** Before every uuid. */
export const NIL_UUID = '00000000-0000-0000-0000-000000000000';

/** An endpoint that was seen to have due work, and the oldest of what was seen. */
export interface SeenEndpoint extends EndpointRef {
  /** Milliseconds of the database's clock. */
  readonly dueAtMs: number;
}

export interface Discovery {
  readonly endpoints: readonly SeenEndpoint[];
  /** Where to go on, when the limit was reached; null when everything due has been seen. */
  readonly next: DiscoveryPlace | null;
}

/** Finds endpoints whose work fell due since the start, reading at most `limit` rows. */
export async function discoverEndpoints(
  db: Queryable,
  start: DiscoveryStart,
  limit: number,
): Promise<Discovery> {
  const after = 'after' in start ? start.after : null;
  const { rows } = await db.query<{
    tenant_id: string;
    endpoint_id: string;
    due_at: string;
    due_at_ms: number;
  }>({
    name: 'discover-endpoints',
    text: DISCOVER_ENDPOINTS,
    values: [
      after?.dueAt ?? null,
      'lookBackMs' in start ? start.lookBackMs : 0,
      after?.tenantId ?? NIL_UUID,
      after?.endpointId ?? NIL_UUID,
      limit,
    ],
  });
  const endpoints = new Map<string, SeenEndpoint>();
  // In due order, so the first of an endpoint is its oldest.
  for (const row of rows) {
    if (endpoints.has(row.endpoint_id)) continue;
    const seen = { tenantId: row.tenant_id, endpointId: row.endpoint_id, dueAtMs: row.due_at_ms };
    endpoints.set(row.endpoint_id, seen);
  }
  const last = rows.at(-1);
  const more = rows.length === limit && last !== undefined;
  return {
    endpoints: [...endpoints.values()],
    next: more ? { tenantId: last.tenant_id, endpointId: last.endpoint_id, dueAt: last.due_at } : null,
  };
}
