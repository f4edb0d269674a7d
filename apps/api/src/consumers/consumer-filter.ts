import { readConsumerReference } from '#runtime';
import { readConsumerId, type TenantTransaction } from '#tenants';

/** Reads the `consumer` of a list's query, before the database is asked; null when none is given. */
export function readConsumerFilter(consumer: unknown) {
  return consumer === undefined ? null : readConsumerReference(consumer, 'consumer');
}

/**
 * The rows of a list, those of one consumer when its filter is given. A uid that nobody has finds nothing, as any id
 * that is not there; a deleted consumer's history is found by its id.
 */
export async function listOfConsumer<Row>(
  tx: TenantTransaction,
  tenantId: string,
  filter: ReturnType<typeof readConsumerFilter>,
  list: (consumerId: string | null) => Promise<readonly Row[]>,
): Promise<readonly Row[]> {
  if (filter === null) return list(null);
  const consumerId = await readConsumerId(tx, tenantId, filter);
  return consumerId === null ? [] : list(consumerId);
}
