import type { EntityManager } from 'typeorm';
import { AppError, newId } from '#runtime';
import { Tenant } from './tenant.entity.js';

/** A DataSource, or the manager of an open transaction. */
export type Repositories = Pick<EntityManager, 'getRepository'>;

/** Stores a new tenant and gives its id. */
export async function createTenant(
  source: Repositories,
  { name }: { readonly name: string },
): Promise<{ id: string }> {
  assertName(name);
  const id = newId();
  await source.getRepository(Tenant).insert({ id, name, createdAt: () => 'now()' });
  return { id };
}

/** Throws `validation_failed` for a name that is empty, too long or holds control characters. */
export function assertName(name: string): void {
  if (name.length >= 1 && name.length <= 200 && !/[\p{Cc}\p{Cs}]/u.test(name)) return;
  throw new AppError('validation_failed', 'A name has 1 to 200 characters and no control characters.', {
    details: [{ field: 'name', reason: 'invalid' }],
  });
}
