import { setTimeout as sleep } from 'node:timers/promises';
import { claimIdempotencyKey, nameKeyResource, type IdempotencyUse } from '#outbox';
import { AppError, limitLockWait, type Queryable } from '#runtime';
import type { TenantTransaction } from '#tenants';
import { Turns } from '../publish/turns.js';
import type { Creation } from './creation.js';

/** How something is made, and how it is found again for a request that comes a second time. */
export interface CreationWork<Made, Tx extends Queryable = TenantTransaction> {
  /** Makes it in the transaction; what it throws takes everything back, and leaves the key free. */
  create(tx: Tx): Promise<Made>;
  /** The uuid by which `read` finds it. */
  idOf(made: Made): string;
  /** What an earlier request made, as it is now and without any secret; throws when it is gone. */
  read(tx: Tx, id: string): Promise<Made>;
}

/** What stands there now, and whether an earlier request made it. */
export interface Created<Made> {
  readonly made: Made;
  readonly repeated: boolean;
}

/** Creates something, once for all requests under one key; when this returns, it is committed together with its key. */
export type CreateOnce<Tx extends Queryable = TenantTransaction> = <Made>(
  tenantId: string,
  creation: Creation,
  work: CreationWork<Made, Tx>,
) => Promise<Created<Made>>;

/** How long a request waits in all for another one with its key. */
const KEY_WAIT_MS = 2_000;
/** What a transaction waits for a key that another process holds; between two of them nothing is open. */
const KEY_LOCK_WAIT_MS = 20;
const PAUSE_MS = 50;

/** Runs work in one transaction that may write the tenant's idempotency keys. */
export type RunFor<Tx> = <Result>(tenantId: string, run: (tx: Tx) => Promise<Result>) => Promise<Result>;

/** A CreateOnce whose transactions are those of `runFor`. */
export function openCreateOnce<Tx extends Queryable>(runFor: RunFor<Tx>): CreateOnce<Tx> {
  const turns = new Turns();
  return async (tenantId, creation, work) => {
    const { idempotency } = creation;
    if (idempotency === null) return { made: await runFor(tenantId, work.create), repeated: false };
    const deadline = performance.now() + KEY_WAIT_MS;
    // Of the requests under one key only one at a time in this process: those that wait hold no connection.
    const turn = await turns.take(`${tenantId} ${idempotency.key}`, KEY_WAIT_MS, () =>
      untilKeyIsFree(deadline, () => runFor(tenantId, (tx) => createOrFind(tx, tenantId, idempotency, work))),
    );
    if (turn === null) throw new AppError('idempotency_key_in_progress', undefined, { retryAfterSeconds: 1 });
    if (turn.result.repeated) creation.markReplayed();
    return turn.result;
  };
}

async function createOrFind<Made, Tx extends Queryable>(
  tx: Tx,
  tenantId: string,
  idempotency: IdempotencyUse,
  work: CreationWork<Made, Tx>,
): Promise<Created<Made>> {
  await limitLockWait(tx, KEY_LOCK_WAIT_MS);
  const claim = await claimIdempotencyKey(tx, tenantId, idempotency);
  await limitLockWait(tx, null);
  if (claim.kind === 'conflict') throw new AppError('idempotency_conflict');
  if (claim.kind === 'repeated') return { made: await work.read(tx, claim.resourceId), repeated: true };
  const made = await work.create(tx);
  await nameKeyResource(tx, tenantId, idempotency.key, work.idOf(made));
  return { made, repeated: false };
}

async function untilKeyIsFree<Result>(deadline: number, work: () => Promise<Result>): Promise<Result> {
  for (;;) {
    try {
      return await work();
    } catch (error) {
      const held = error instanceof AppError && error.code === 'idempotency_key_in_progress';
      if (!held || performance.now() >= deadline) throw error;
      await sleep(PAUSE_MS);
    }
  }
}
