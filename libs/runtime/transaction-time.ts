import type { Queryable } from './database.js';

const TRANSACTION_TIME = `
select floor(extract(epoch from now()) * 1000)::double precision as ms
`;

/**
 * The millisecond at which the transaction `tx` began by the database's clock. Ids made of it (newId) sort as created_at
 * does, whichever process makes them: what a list's order and its settled_until rest on.
 */
export async function transactionTimeMs(tx: Queryable): Promise<number> {
  const { rows } = await tx.query<{ ms: number }>({ text: TRANSACTION_TIME });
  return rows[0]!.ms;
}
