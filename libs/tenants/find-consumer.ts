import { IsNull, LessThan } from 'typeorm';
import { AppError, type ConsumerReference } from '#runtime';
import { Consumer } from './consumer.entity.js';
import type { Repositories } from './with-tenant.js';

/** The tenant's consumer; throws `consumer_not_found` when it is not there, deleted, or somebody else's. */
export async function findConsumer(
  source: Repositories,
  tenantId: string,
  reference: ConsumerReference,
): Promise<Consumer> {
  const consumer = await source
    .getRepository(Consumer)
    .findOneBy({ tenantId, ...reference, deletedAt: IsNull() });
  return consumer ?? refuseConsumer();
}

/** Says that there is no such consumer, to whoever asked for one: throws `consumer_not_found`. */
export function refuseConsumer(): never {
  throw new AppError('consumer_not_found');
}

/** The id to filter by: a deleted consumer is still found by its id, never by its uid; null when nobody has the uid. */
export async function readConsumerId(
  source: Repositories,
  tenantId: string,
  { id, uid }: ConsumerReference,
): Promise<string | null> {
  if (id !== undefined) return id;
  const consumer = await source
    .getRepository(Consumer)
    .findOne({ select: { id: true }, where: { tenantId, uid, deletedAt: IsNull() } });
  return consumer?.id ?? null;
}

/** The tenant's consumers, newest first, at most `limit`, those older than the consumer `afterId` when it is given. */
export function listConsumers(
  source: Repositories,
  tenantId: string,
  filter: { readonly limit: number; readonly afterId: string | null; readonly uid: string | null },
): Promise<Consumer[]> {
  return source.getRepository(Consumer).find({
    where: {
      tenantId,
      deletedAt: IsNull(),
      ...(filter.afterId === null ? {} : { id: LessThan(filter.afterId) }),
      ...(filter.uid === null ? {} : { uid: filter.uid }),
    },
    order: { id: 'DESC' },
    take: filter.limit,
  });
}

/** Characters in the name of a consumer. */
export const CONSUMER_NAME_CHARACTERS_MAX = 200;

/** Throws `validation_failed` for a name that is too long or holds control characters. */
export function assertConsumerName(name: string): void {
  if (name.length <= CONSUMER_NAME_CHARACTERS_MAX && !/[\p{Cc}\p{Cs}]/u.test(name)) return;
  const rule = `name must have at most ${CONSUMER_NAME_CHARACTERS_MAX} characters and no control characters.`;
  throw new AppError('validation_failed', rule, { details: [{ field: 'name', reason: 'invalid' }] });
}
