import type pg from 'pg';
import type { DataSource, EntityManager } from 'typeorm';
import { AppError, isDatabaseUnavailable, type Queryable } from '#runtime';

/** What knows the entities: a DataSource, or the manager of an open transaction. */
export type Repositories = Pick<EntityManager, 'getRepository'>;

/** A transaction that sees one tenant's rows: our own statements and TypeORM's entities, on the same connection. */
export interface TenantTransaction extends Queryable, Repositories {}

/** Only these letters reach the text of a statement. */
const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/**
 * Three statements in one round trip. The lock says to a deletion (migrations/0005) that somebody still works for the
 * tenant; the look behind it, by a snapshot of its own, finds the tombstone of one that came first. `set local` and not
 * set_config(), which a distributed PostgreSQL does not carry to its nodes.
 */
const enter = (tenantId: string): string => `
set local waybill.tenant = '${tenantId}';
select pg_advisory_xact_lock_shared(hashtextextended('waybill.tenant ${tenantId}', 0));
select t.id from waybill.tenants t where t.id = '${tenantId}' and t.deleted_at is null
`;

/**
 * Runs `run` in a transaction in which row-level security lets through the rows of one tenant: committed when it resolves,
 * rolled back when it rejects. The setting ends with the transaction, so the next user of the connection starts without
 * a tenant. Throws `invalid_api_key` for a tenant that was deleted since the key was looked up.
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
    const answers = (await connection.query(enter(tenantId))) as unknown as readonly pg.QueryResult[];
    if (answers.at(-1)!.rows.length === 0) throw new AppError('invalid_api_key');
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
