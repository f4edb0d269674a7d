import type { EntityManager } from 'typeorm';
import type { Queryable } from '#runtime';

/** The connection of an open transaction of TypeORM, for functions that send plain SQL. */
export async function asQueryable(tx: EntityManager): Promise<Queryable> {
  if (tx.queryRunner === undefined) throw new Error('there is no open transaction');
  const client: unknown = await tx.queryRunner.connect();
  return client as Queryable;
}
