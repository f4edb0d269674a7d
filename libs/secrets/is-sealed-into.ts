import type { Queryable } from '#runtime';

const IS_SEALED_INTO = `
select exists (select from waybill.encryption_canary)
  or exists (select from waybill.tenant_data_keys) as used
`;

/** Whether anything in this database was sealed already, so that it needs the key that it was sealed with. */
export async function isSealedInto(db: Queryable): Promise<boolean> {
  const { rows } = await db.query<{ used: boolean }>({ text: IS_SEALED_INTO });
  return rows[0]!.used;
}
