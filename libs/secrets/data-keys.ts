import { randomBytes, type KeyObject } from 'node:crypto';
import type { Queryable } from '#runtime';
import { unreadable } from './envelope.js';
import { unwrapDataKey, wrapDataKey, type Keyring } from './keyring.js';

/** A tenant's data key and its number. */
export interface DataKey {
  readonly version: number;
  readonly key: KeyObject;
}

const DATA_KEY_BYTES = 32;
const FIRST_VERSION = 1;

const READ_NEWEST = `
select distinct on (tenant_id) tenant_id, version, wrapped_key
from waybill.tenant_data_keys
where tenant_id = any($1::uuid[])
order by tenant_id, version desc
`;

const MAKE_FIRST = `
insert into waybill.tenant_data_keys (tenant_id, version, wrapped_key, kek_version)
select tenant_id, $3, wrapped_key, $4
from unnest($1::uuid[], $2::bytea[]) as made (tenant_id, wrapped_key)
order by tenant_id
on conflict do nothing
`;

const READ_ONE = `
select wrapped_key
from waybill.tenant_data_keys
where tenant_id = $1
  and version = $2
`;

interface KeyRow {
  tenant_id: string;
  version: number;
  wrapped_key: Buffer;
}

/**
 * The data key that each of these tenants seals with now; a tenant without one gets its first. Of two that make it at
 * once one key is kept, and both get that one.
 */
export async function provideDataKeys(
  db: Queryable,
  keyring: Keyring,
  tenantIds: readonly string[],
): Promise<ReadonlyMap<string, DataKey>> {
  const asked = [...new Set(tenantIds)];
  const found = await readNewest(db, asked);
  const lacking = asked.filter((tenantId) => !found.has(tenantId));
  if (lacking.length > 0) {
    const wrapped = lacking.map((tenantId) =>
      wrapDataKey(keyring, tenantId, FIRST_VERSION, randomBytes(DATA_KEY_BYTES)),
    );
    await db.query({ text: MAKE_FIRST, values: [lacking, wrapped, FIRST_VERSION, keyring.newest] });
    for (const [tenantId, row] of await readNewest(db, lacking)) found.set(tenantId, row);
  }
  return new Map(
    [...found.values()].map(({ tenant_id: tenantId, version, wrapped_key: wrapped }) => [
      tenantId,
      { version, key: unwrapDataKey(keyring, tenantId, version, wrapped) },
    ]),
  );
}

/** The data key that one tenant seals with now, made if it has none. */
export async function provideDataKey(db: Queryable, keyring: Keyring, tenantId: string): Promise<DataKey> {
  return (await provideDataKeys(db, keyring, [tenantId])).get(tenantId)!;
}

/** One of a tenant's data keys, to open what was sealed with it; throws `secret_unreadable` when there is none. */
export async function readDataKey(
  db: Queryable,
  keyring: Keyring,
  tenantId: string,
  version: number,
): Promise<KeyObject> {
  const { rows } = await db.query<{ wrapped_key: Buffer }>({
    name: 'read-data-key',
    text: READ_ONE,
    values: [tenantId, version],
  });
  if (rows[0] === undefined) throw unreadable(`the tenant has no data key of version ${version}`);
  return unwrapDataKey(keyring, tenantId, version, rows[0].wrapped_key);
}

async function readNewest(db: Queryable, tenantIds: readonly string[]): Promise<Map<string, KeyRow>> {
  const { rows } = await db.query<KeyRow>({ text: READ_NEWEST, values: [tenantIds] });
  return new Map(rows.map((row) => [row.tenant_id, row]));
}
