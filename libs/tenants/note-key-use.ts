import type { Queryable } from '#runtime';

/** Rows that somebody else holds are passed over: the next use notes itself. */
const NOTE_KEY_USE = `
with used as materialized (
  select k.tenant_id, k.id
  from unnest($1::uuid[], $2::uuid[]) as u (tenant_id, id)
  join waybill.api_keys k on k.tenant_id = u.tenant_id and k.id = u.id
  where k.last_used_at is null or k.last_used_at < now() - interval '1 minute'
  for update of k skip locked
)
update waybill.api_keys k
set last_used_at = now()
from used u
where k.tenant_id = u.tenant_id
  and k.id = u.id
`;

/** Notes that these keys were used about now, each at most once a minute however many processes say so. */
export async function noteKeyUse(
  db: Queryable,
  keys: readonly { readonly tenantId: string; readonly keyId: string }[],
): Promise<void> {
  await db.query({
    text: NOTE_KEY_USE,
    values: [keys.map(({ tenantId }) => tenantId), keys.map(({ keyId }) => keyId)],
  });
}
