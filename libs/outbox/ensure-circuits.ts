import type { Queryable } from '#runtime';
import { plainArray } from './array-text.js';
import type { EndpointRef } from './types.js';

const ENSURE_CIRCUITS = `
insert into waybill.circuits (tenant_id, endpoint_id)
select l.tenant_id, l.endpoint_id
from unnest($1::uuid[], $2::uuid[]) as l (tenant_id, endpoint_id)
order by l.tenant_id, l.endpoint_id
on conflict (tenant_id, endpoint_id) do nothing
`;

/**
 * Makes the rows in which the failures of these endpoints will be counted. An endpoint that never failed has none, so
 * this comes before the first record of a failure.
 */
export async function ensureCircuits(db: Queryable, endpoints: readonly EndpointRef[]): Promise<void> {
  if (endpoints.length === 0) return;
  await db.query({
    name: 'ensure-circuits',
    text: ENSURE_CIRCUITS,
    values: [
      plainArray(endpoints.map((endpoint) => endpoint.tenantId)),
      plainArray(endpoints.map((endpoint) => endpoint.endpointId)),
    ],
  });
}
