import type { Queryable } from './database.js';

/**
 * How long each statement of the transaction `tx` waits for a lock from here on, before it fails with SQLSTATE 55P03; null
 * is what the connection was opened with. Ends with the transaction.
 */
export async function limitLockWait(tx: Queryable, waitMs: number | null): Promise<void> {
  const value = waitMs === null ? 'default' : `'${Math.ceil(waitMs)}ms'`;
  await tx.query({ text: `set local lock_timeout = ${value}` });
}
