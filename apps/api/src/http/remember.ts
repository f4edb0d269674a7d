/**
 * A function that does the work at most once in `ageMs`: calls meanwhile get the last result, calls during the work
 * wait for the same one. A failure is not remembered.
 */
export function remember<Result>(ageMs: number, work: () => Promise<Result>): () => Promise<Result> {
  let last: { readonly at: number; readonly result: Promise<Result> } | null = null;
  return () => {
    if (last !== null && performance.now() - last.at < ageMs) return last.result;
    const current = { at: performance.now(), result: work() };
    last = current;
    current.result.catch(() => {
      if (last === current) last = null;
    });
    return current.result;
  };
}
