/** Reads a list to its end, page by page, each behind the last row of the one before. */
export async function everyPage<Row extends { readonly id: string }>(
  read: (page: { readonly afterId: string | null; readonly limit: number }) => Promise<readonly Row[]>,
  limit = 1_000,
): Promise<Row[]> {
  const rows: Row[] = [];
  for (;;) {
    const page = await read({ afterId: rows.at(-1)?.id ?? null, limit });
    rows.push(...page);
    if (page.length < limit) return rows;
  }
}
