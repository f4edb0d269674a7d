import { AppError, sqlState, type Queryable } from '#runtime';

/**
 * The row stands before what it is for: whoever comes second waits here, before doing any work. Which resource it is for
 * is not known yet, so it names none; nobody sees it like that, since both are committed together.
 */
const CLAIM_IDEMPOTENCY_KEY = `
insert into waybill.idempotency_keys (tenant_id, key, fingerprint, resource_id, created_at)
values ($1, $2, $3, '00000000-0000-0000-0000-000000000000', now())
on conflict (tenant_id, key) do nothing
`;

const READ_IDEMPOTENCY_KEY = `
select fingerprint, resource_id
from waybill.idempotency_keys
where tenant_id = $1
  and key = $2
`;

/** What a request is known by when it comes again: its key, and a digest of all that it asks for. */
export interface IdempotencyUse {
  readonly key: string;
  readonly fingerprint: Buffer;
}

export type KeyClaim =
  | { readonly kind: 'claimed' }
  | { readonly kind: 'repeated'; readonly resourceId: string }
  | { readonly kind: 'conflict' };

const LOCK_NOT_AVAILABLE = '55P03';

/**
 * Takes a key for the transaction `tx`, or says what it was used for before. A claimed key is kept by nameKeyResource
 * and the commit; a rollback frees it. Throws `idempotency_key_in_progress` while another transaction holds it: how long
 * is waited for that one is the lock timeout of `tx`, which then can only be rolled back.
 */
export async function claimIdempotencyKey(
  tx: Queryable,
  tenantId: string,
  { key, fingerprint }: IdempotencyUse,
): Promise<KeyClaim> {
  const values = [tenantId, key, fingerprint];
  const claimed = await tx
    .query({ name: 'claim-idempotency-key', text: CLAIM_IDEMPOTENCY_KEY, values })
    .catch((error: unknown) => {
      throw sqlState(error) === LOCK_NOT_AVAILABLE ? inProgress(error) : error;
    });
  if (claimed.rowCount === 1) return { kind: 'claimed' };
  const { rows } = await tx.query<{ fingerprint: Buffer; resource_id: string }>({
    name: 'read-idempotency-key',
    text: READ_IDEMPOTENCY_KEY,
    values: [tenantId, key],
  });
  const first = rows[0];
  // Forgotten between the two statements: the caller may simply ask again.
  if (first === undefined) throw inProgress();
  if (!first.fingerprint.equals(fingerprint)) return { kind: 'conflict' };
  return { kind: 'repeated', resourceId: first.resource_id };
}

function inProgress(cause?: unknown): AppError {
  return new AppError('idempotency_key_in_progress', undefined, { retryAfterSeconds: 1, cause });
}
