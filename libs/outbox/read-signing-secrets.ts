import type { Queryable } from '#runtime';

const READ_SIGNING_SECRETS = `
select s.id, s.secret
from waybill.endpoints p
join waybill.endpoint_secrets s on s.tenant_id = p.tenant_id and s.endpoint_id = p.id
where p.tenant_id = $1
  and p.id = $2
  and s.revoked_at is null
  and (s.expires_at is null or s.expires_at > now())
order by s.created_at desc, s.id desc
`;

/** A secret to sign with. */
export interface LiveSecret {
  readonly id: string;
  readonly secret: string;
}

/** The endpoint's live secrets (neither revoked nor expired), newest first, to sign a delivery with. */
export async function readSigningSecrets(
  db: Queryable,
  tenantId: string,
  endpointId: string,
): Promise<LiveSecret[]> {
  const { rows } = await db.query<{ id: string; secret: string }>({
    name: 'read-signing-secrets',
    text: READ_SIGNING_SECRETS,
    values: [tenantId, endpointId],
  });
  return rows.map(({ id, secret }) => ({ id, secret }));
}
