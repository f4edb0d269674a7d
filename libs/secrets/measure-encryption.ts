import type { Queryable } from '#runtime';

const MEASURE = `
select
  (select count(*)::integer from waybill.endpoint_secrets where secret is not null) as clear,
  (select count(*)::integer from waybill.tenant_data_keys where kek_version <> $1) as old,
  array(select distinct kek_version from waybill.tenant_data_keys where kek_version <> $1 order by 1) as versions
`;

/** How far everything is sealed, and by the newest key. */
export interface EncryptionCounts {
  /** Secrets in clear text, from before they were sealed. */
  readonly clear: number;
  /** Data keys that are wrapped by another key-encryption key than the newest. */
  readonly old: number;
  readonly oldVersions: readonly number[];
}

/** Counts what a start or `waybill secrets rewrap` has still to do, over all tenants. */
export async function measureEncryption(db: Queryable, newestVersion: number): Promise<EncryptionCounts> {
  const { rows } = await db.query<{ clear: number; old: number; versions: number[] }>({
    text: MEASURE,
    values: [newestVersion],
  });
  const { clear, old, versions } = rows[0]!;
  return { clear, old, oldVersions: versions };
}
