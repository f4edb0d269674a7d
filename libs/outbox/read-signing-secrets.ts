import type { Queryable } from '#runtime';

const READ_SIGNING_SECRETS = `
select s.id, s.secret, s.sealed_secret, (extract(epoch from s.expires_at) * 1000)::double precision as expires_at_ms
from waybill.endpoints p
join waybill.endpoint_secrets s on s.tenant_id = p.tenant_id and s.endpoint_id = p.id
where p.tenant_id = $1
  and p.id = $2
  and s.revoked_at is null
  and (s.expires_at is null or s.expires_at > now())
order by s.expires_at desc, s.created_at desc, s.id desc
`;

/** A stored secret to sign with: sealed, or in clear where no start has sealed it yet. */
export interface LiveSecret {
  readonly id: string;
  readonly clear: string | null;
  readonly sealed: Buffer | null;
  /** By the database's clock; null for the one that stays. */
  readonly expiresAtMs: number | null;
}

interface SecretRow {
  id: string;
  secret: string | null;
  sealed_secret: Buffer | null;
  expires_at_ms: number | null;
}

/**
 * The endpoint's live secrets (neither revoked nor expired), to sign a delivery with: the one that stays first, then
 * those that end, newest first.
 */
export async function readSigningSecrets(
  db: Queryable,
  tenantId: string,
  endpointId: string,
): Promise<LiveSecret[]> {
  const { rows } = await db.query<SecretRow>({
    name: 'read-signing-secrets',
    text: READ_SIGNING_SECRETS,
    values: [tenantId, endpointId],
  });
  return rows.map((row) => ({
    id: row.id,
    clear: row.secret,
    sealed: row.sealed_secret,
    expiresAtMs: row.expires_at_ms,
  }));
}
