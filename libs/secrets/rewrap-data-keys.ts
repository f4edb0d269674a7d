import { withTransaction, type Database, type Queryable } from '#runtime';
import { dropOldCanaries } from './canary.js';
import { unwrapDataKeyBytes, wrapDataKey, type Keyring } from './keyring.js';

const LOCK_OLD = `
select tenant_id, version, wrapped_key
from waybill.tenant_data_keys
where kek_version <> $1
order by tenant_id, version
limit $2
for update skip locked
`;

const STORE_WRAPPED = `
update waybill.tenant_data_keys k
set wrapped_key = x.wrapped_key, kek_version = $4
from unnest($1::uuid[], $2::integer[], $3::bytea[]) as x (tenant_id, version, wrapped_key)
where k.tenant_id = x.tenant_id
  and k.version = x.version
`;

const COUNT_OLD = `
select count(*)::integer as left
from waybill.tenant_data_keys
where kek_version <> $1
`;

/** How far a re-wrap has come. */
export interface RewrapProgress {
  readonly rewrapped: number;
  /** Data keys that are still wrapped by another version than the newest. */
  readonly left: number;
}

/**
 * Wraps every data key with the newest key-encryption key, `batchSize` a transaction; the secrets themselves are not
 * touched. Killed in between, the next run goes on where this one stopped. When none is left, old versions are no
 * longer needed to start.
 */
export async function rewrapDataKeys(
  pool: Database,
  keyring: Keyring,
  options: { readonly batchSize: number; readonly onProgress: (progress: RewrapProgress) => void },
): Promise<RewrapProgress> {
  let rewrapped = 0;
  for (;;) {
    const batch = await withTransaction(pool, (tx) => rewrapBatch(tx, keyring, options.batchSize));
    rewrapped += batch;
    const progress = { rewrapped, left: await countOld(pool, keyring) };
    if (batch === 0) {
      await dropOldCanaries(pool, keyring);
      return progress;
    }
    options.onProgress(progress);
  }
}

async function rewrapBatch(tx: Queryable, keyring: Keyring, batchSize: number): Promise<number> {
  const { rows } = await tx.query<{ tenant_id: string; version: number; wrapped_key: Buffer }>({
    text: LOCK_OLD,
    values: [keyring.newest, batchSize],
  });
  if (rows.length === 0) return 0;
  const wrapped = rows.map(({ tenant_id: tenantId, version, wrapped_key: old }) =>
    wrapDataKey(keyring, tenantId, version, unwrapDataKeyBytes(keyring, tenantId, version, old)),
  );
  await tx.query({
    text: STORE_WRAPPED,
    values: [rows.map((row) => row.tenant_id), rows.map((row) => row.version), wrapped, keyring.newest],
  });
  return rows.length;
}

async function countOld(db: Queryable, keyring: Keyring): Promise<number> {
  const { rows } = await db.query<{ left: number }>({ text: COUNT_OLD, values: [keyring.newest] });
  return rows[0]!.left;
}
