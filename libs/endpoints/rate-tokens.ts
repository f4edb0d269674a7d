import type { Queryable } from '#runtime';

const DELETE = `
delete from waybill.rate_tokens
where tenant_id = $1 and endpoint_id = $2
`;

/** Takes away the tokens of an endpoint that has no rate any more. */
export async function deleteRateTokens(tx: Queryable, tenantId: string, endpointId: string): Promise<void> {
  await tx.query({ text: DELETE, values: [tenantId, endpointId] });
}
