import type { Queryable } from '#runtime';
import { plainArray } from './array-text.js';
import type { EndpointRef } from './types.js';

const ENSURE_CIRCUITS = `
insert into waybill.circuits (tenant_id, endpoint_id)
select l.tenant_id, l.endpoint_id
from unnest($2::uuid[], $3::uuid[]) as l (tenant_id, endpoint_id)
join waybill.tenants t on t.id = any($1) and t.id = l.tenant_id and t.deleted_at is null
order by l.tenant_id, l.endpoint_id
on conflict (tenant_id, endpoint_id) do nothing
`;

/**
 * Makes the rows in which the failures of these endpoints will be counted. An endpoint that never failed has none, so
 * this comes before the first record of a failure. None is made for a deleted tenant.
 */
export async function ensureCircuits(db: Queryable, endpoints: readonly EndpointRef[]): Promise<void> {
  if (endpoints.length === 0) return;
  const tenants = endpoints.map((endpoint) => endpoint.tenantId);
  await db.query({
    name: 'ensure-circuits',
    text: ENSURE_CIRCUITS,
    values: [
      plainArray([...new Set(tenants)]),
      plainArray(tenants),
      plainArray(endpoints.map((endpoint) => endpoint.endpointId)),
    ],
  });
}
