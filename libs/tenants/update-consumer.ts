import { isDeepStrictEqual } from 'node:util';
import { IsNull } from 'typeorm';
import { AppError, type ConsumerReference, type VersionExpectation } from '#runtime';
import { Consumer } from './consumer.entity.js';
import { assertConsumerName, findConsumer, refuseConsumer } from './find-consumer.js';
import type { TenantTransaction } from './with-tenant.js';

/** What may be changed; what is undefined stays. */
export interface ConsumerChange {
  readonly name?: string;
  readonly metadata?: Readonly<Record<string, string>> | null;
}

/**
 * Changes a consumer under a row lock: of two that expect the same version one succeeds, the other gets
 * `stale_version`. Only a real change is a new version. Its uid is never changed.
 */
export async function updateConsumer(
  tx: TenantTransaction,
  tenantId: string,
  reference: ConsumerReference,
  change: ConsumerChange,
  options: { readonly expects: VersionExpectation },
): Promise<Consumer> {
  if (change.name !== undefined) assertConsumerName(change.name);
  const before = await lockConsumer(tx, tenantId, reference, 'for_no_key_update', options.expects);
  const { name = before.name, metadata = before.metadata } = change;
  if (name !== before.name || !isDeepStrictEqual(metadata, before.metadata)) {
    await tx
      .getRepository(Consumer)
      .update(
        { tenantId, id: before.id },
        { name, metadata, version: before.version + 1, updatedAt: () => 'now()' },
      );
  }
  return findConsumer(tx, tenantId, { id: before.id });
}

/**
 * The tenant's consumer, locked until the transaction ends: `for_key_share` keeps it from being deleted,
 * `for_no_key_update` from being changed, `pessimistic_write` from both and from getting endpoints.
 */
export async function lockConsumer(
  tx: TenantTransaction,
  tenantId: string,
  reference: ConsumerReference,
  mode: 'for_key_share' | 'for_no_key_update' | 'pessimistic_write',
  expects: VersionExpectation = () => true,
): Promise<Consumer> {
  const consumer = await tx.getRepository(Consumer).findOne({
    where: { tenantId, ...reference, deletedAt: IsNull() },
    lock: { mode },
  });
  if (consumer === null) return refuseConsumer();
  if (expects(consumer.version)) return consumer;
  throw new AppError('stale_version', `The consumer is at version ${consumer.version}.`);
}
