import { newId, transactionTimeMs } from '#runtime';
import { Consumer } from './consumer.entity.js';
import { assertConsumerName, findConsumer } from './find-consumer.js';
import type { TenantTransaction } from './with-tenant.js';

/** Of two at once the second waits for the first one's commit, and then makes nothing. */
const MAKE_CONSUMER = `
insert into waybill.consumers (tenant_id, id, uid, name, metadata)
values ($1, $2, $3, $4, $5::jsonb)
on conflict (tenant_id, uid) where deleted_at is null do nothing
returning id
`;

export interface NewConsumer {
  readonly uid: string;
  readonly name?: string;
  readonly metadata?: Readonly<Record<string, string>> | null;
}

/** A consumer can be deleted between the statements: then it is made after all. */
const TRIES_MAX = 3;

/**
 * The tenant's consumer of this uid, made now unless there is one. One that is there stays as it is, whatever name and
 * metadata came along.
 */
export async function ensureConsumer(
  tx: TenantTransaction,
  tenantId: string,
  { uid, name = '', metadata = null }: NewConsumer,
): Promise<{ readonly consumer: Consumer; readonly made: boolean }> {
  assertConsumerName(name);
  for (let tries = 1; ; tries += 1) {
    const values = [
      tenantId,
      newId(await transactionTimeMs(tx)),
      uid,
      name,
      metadata && JSON.stringify(metadata),
    ];
    const { rows } = await tx.query<{ id: string }>({ text: MAKE_CONSUMER, values });
    const made = rows.length > 0;
    try {
      return { consumer: await findConsumer(tx, tenantId, { uid }), made };
    } catch (error) {
      if (made || tries === TRIES_MAX) throw error;
    }
  }
}
