import type { ApiContext } from '../api-context.js';

/** A page of a list, and the time up to which the list is complete for good; null when that cannot be told. */
export type SettledList<Page> = Page & { readonly settled_until: string | null };

/**
 * Reads a page of a list and says up to when nothing more will come into it. That is asked before the page is read: what
 * is committed between the two can only be in the page.
 */
export async function settledList<Page>(
  { settledUntil }: Pick<ApiContext, 'settledUntil'>,
  read: () => Promise<Page>,
): Promise<SettledList<Page>> {
  const until = await settledUntil();
  return { ...(await read()), settled_until: until?.toISOString() ?? null };
}
