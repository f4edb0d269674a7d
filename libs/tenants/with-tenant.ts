import type pg from 'pg';
import type { DataSource, EntityManager } from 'typeorm';
import { isDatabaseUnavailable, type Queryable } from '#runtime';

/** A transaction that sees one tenant's rows: our own statements and TypeORM's entities, on the same connection. */
export interface TenantTransaction extends Queryable, Pick<EntityManager, 'getRepository'> {}

/** Only these letters reach the text of a statement. */
const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/**
 * Runs `run` in a transaction in which row-level security lets through the rows of one tenant: committed when it resolves,
 * rolled back when it rejects. The setting ends with the transaction, so the next user of the connection starts without
 * a tenant. `set local` and not set_config(), which a distributed PostgreSQL does not carry to its nodes.
 */
export async function withTenant<Result>(
  source: DataSource,
  tenantId: string,
  run: (tx: TenantTransaction) => Promise<Result>,
): Promise<Result> {
  if (!UUID.test(tenantId)) throw new TypeError('a tenant id must be a uuid');
  const runner = source.createQueryRunner();
  let client: pg.PoolClient | undefined;
  let broken: Error | undefined;
  try {
    const connection = (client = (await runner.connect()) as pg.PoolClient);
    await runner.startTransaction();
    await connection.query(`set local waybill.tenant = '${tenantId}'`);
    const result = await run({
      query: (statement) => connection.query(statement),
      getRepository: (entity) => runner.manager.getRepository(entity),
    });
    await runner.commitTransaction();
    return result;
  } catch (error) {
    // A connection that broke, or that cannot even roll back, is thrown away: its transaction ends with it.
    if (isDatabaseUnavailable(error)) broken = error as Error;
    else if (runner.isTransactionActive)
      await runner.rollbackTransaction().catch((failure: Error) => (broken = failure));
    throw error;
  } finally {
    // TypeORM's release() would give it back to the pool; an error of the connection is how it hears that it must not.
    if (broken !== undefined) client?.emit('error', broken);
    await runner.release();
  }
}
