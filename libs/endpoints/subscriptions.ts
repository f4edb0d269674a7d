import { In } from 'typeorm';
import type { Repositories } from '#tenants';
import { Subscription } from './subscription.entity.js';

/** Writes what an endpoint wants to hear of in place of what stood there; run it inside the endpoint's transaction. */
export async function replaceSubscriptions(
  tx: Repositories,
  tenantId: string,
  { id: endpointId, consumerId }: { readonly id: string; readonly consumerId: string | null },
  eventTypes: readonly string[],
): Promise<void> {
  const repository = tx.getRepository(Subscription);
  await repository.delete({ tenantId, endpointId });
  if (eventTypes.length > 0) {
    await repository.insert(eventTypes.map((eventType) => ({ tenantId, endpointId, consumerId, eventType })));
  }
}

/** The sorted subscription entries of each of these endpoints. */
export async function readSubscriptions(
  source: Repositories,
  tenantId: string,
  endpointIds: readonly string[],
): Promise<Map<string, string[]>> {
  const entries = new Map<string, string[]>(endpointIds.map((id) => [id, []]));
  if (endpointIds.length === 0) return entries;
  const rows = await source.getRepository(Subscription).find({
    where: { tenantId, endpointId: In([...endpointIds]) },
    order: { eventType: 'ASC' },
  });
  for (const row of rows) entries.get(row.endpointId)?.push(row.eventType);
  return entries;
}
