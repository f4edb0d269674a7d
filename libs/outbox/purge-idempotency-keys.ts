import type { Queryable } from '#runtime';

const PURGE_IDEMPOTENCY_KEYS = `
with old as materialized (
  select ctid as place
  from waybill.idempotency_keys
  where created_at < now() - $1 * interval '1 day'
  order by created_at
  limit $2
  for update skip locked
)
delete from waybill.idempotency_keys
where ctid = any (array(select place from old))
`;

/** How long a used idempotency key is remembered. */
export const IDEMPOTENCY_KEY_DAYS = 7;

/** Forgets at most `limit` keys that are older than seven days; returns how many. Replicas may run it side by side. */
export async function purgeIdempotencyKeys(db: Queryable, limit: number): Promise<number> {
  const { rowCount } = await db.query({
    text: PURGE_IDEMPOTENCY_KEYS,
    values: [IDEMPOTENCY_KEY_DAYS, limit],
  });
  return rowCount ?? 0;
}
