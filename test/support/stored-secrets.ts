import { type Keyring, openSecret, readDataKey } from '#secrets';
import type { Pool } from 'pg';

import { testKeyring } from './encryption.js';

const PLANT = `
with endpoint as (
  insert into waybill.endpoints (tenant_id, id, url)
  select $1, gen_random_uuid(), 'https://receiver.example/' || n from generate_series(1, $2) n
  returning tenant_id, id
)
insert into waybill.endpoint_secrets (tenant_id, endpoint_id, id, secret)
select tenant_id, id, gen_random_uuid(), 'whsec_' || encode(sha256(uuid_send(id)), 'base64') from endpoint
returning id, secret
`;

/** Stores endpoints as a release before this one did; the secrets by their ids. */
export async function plantClear(
  pool: Pool,
  tenantIds: readonly string[],
  each: number,
): Promise<Map<string, string>> {
  const planted = new Map<string, string>();
  for (const tenantId of tenantIds) {
    const { rows } = await pool.query<{ id: string; secret: string }>(PLANT, [tenantId, each]);
    for (const { id, secret } of rows) planted.set(id, secret);
  }
  return planted;
}

interface SecretRow {
  readonly tenant_id: string;
  readonly endpoint_id: string;
  readonly id: string;
  readonly secret: string | null;
  readonly sealed_secret: Buffer;
}

/** All secrets as the database holds them, by their ids, opened where they are sealed; and how many stand in clear. */
export async function readStoredSecrets(
  pool: Pool,
  keyring: Keyring = testKeyring(),
): Promise<{ readonly clear: number; readonly secrets: Map<string, string> }> {
  const { rows } = await pool.query<SecretRow>('select * from waybill.endpoint_secrets');
  const secrets = new Map<string, string>();
  for (const { tenant_id: tenantId, endpoint_id: endpointId, id, secret, sealed_secret: sealed } of rows) {
    const place = { tenantId, endpointId, secretId: id };
    const dataKeyOf = (version: number) => readDataKey(pool, keyring, tenantId, version);
    secrets.set(id, secret ?? (await openSecret(place, sealed, dataKeyOf)));
  }
  return { clear: rows.filter(({ secret }) => secret !== null).length, secrets };
}
