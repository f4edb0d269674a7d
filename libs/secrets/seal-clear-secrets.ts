import { withTransaction, type Database, type Queryable } from '#runtime';
import { provideDataKeys } from './data-keys.js';
import { sealSecret } from './endpoint-secret.js';
import type { Keyring } from './keyring.js';

/** Small enough that nobody who rotates a secret waits for long. */
const BATCH = 200;

const LOCK_CLEAR = `
select tenant_id, endpoint_id, id, secret
from waybill.endpoint_secrets
where secret is not null
order by tenant_id, endpoint_id, id
limit $1
for update skip locked
`;

const STORE_SEALED = `
update waybill.endpoint_secrets s
set secret = null, sealed_secret = x.sealed_secret
from unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::bytea[]) as x (tenant_id, endpoint_id, id, sealed_secret)
where s.tenant_id = x.tenant_id
  and s.endpoint_id = x.endpoint_id
  and s.id = x.id
  and s.secret is not null
`;

interface ClearRow {
  tenant_id: string;
  endpoint_id: string;
  id: string;
  secret: string;
}

/**
 * Seals every secret that a release before this one stored in clear, a batch a transaction, and says how many. Killed
 * in between it has lost nothing: a row is clear or sealed, never neither. What another process is sealing at this
 * moment is left to it.
 */
export async function sealClearSecrets(pool: Database, keyring: Keyring): Promise<number> {
  let sealed = 0;
  for (;;) {
    const batch = await withTransaction(pool, (tx) => sealBatch(tx, keyring));
    if (batch === 0) return sealed;
    sealed += batch;
  }
}

async function sealBatch(tx: Queryable, keyring: Keyring): Promise<number> {
  const { rows } = await tx.query<ClearRow>({ text: LOCK_CLEAR, values: [BATCH] });
  if (rows.length === 0) return 0;
  const keys = await provideDataKeys(
    tx,
    keyring,
    rows.map((row) => row.tenant_id),
  );
  const sealed = rows.map((row) =>
    sealSecret(
      keys.get(row.tenant_id)!,
      { tenantId: row.tenant_id, endpointId: row.endpoint_id, secretId: row.id },
      row.secret,
    ),
  );
  await tx.query({
    text: STORE_SEALED,
    values: [
      rows.map((row) => row.tenant_id),
      rows.map((row) => row.endpoint_id),
      rows.map((row) => row.id),
      sealed,
    ],
  });
  return rows.length;
}
