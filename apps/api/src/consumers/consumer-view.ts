import { formatId } from '#runtime';
import type { Consumer } from '#tenants';

/** A consumer as the API shows it. */
export function consumerView(consumer: Consumer) {
  return {
    id: formatId('consumer', consumer.id),
    uid: consumer.uid,
    name: consumer.name,
    metadata: consumer.metadata,
    version: consumer.version,
    created_at: consumer.createdAt.toISOString(),
    updated_at: consumer.updatedAt.toISOString(),
  };
}
