/** Something that ends early when its caller's signal fires. */
export interface Abortable {
  abort(): void;
}

const watched = new WeakMap<AbortSignal, Set<Abortable>>();

/**
 * Calls `abort()` when the signal fires, until `unwatchAbort`. One listener a signal: a dispatcher passes one signal to
 * thousands of sends, and removing a listener costs a walk through all of them.
 */
export function watchAbort(signal: AbortSignal, abortable: Abortable): void {
  const known = watched.get(signal);
  if (known) {
    known.add(abortable);
    return;
  }
  const waiting = new Set([abortable]);
  watched.set(signal, waiting);
  signal.addEventListener('abort', () => waiting.forEach((each) => each.abort()), { once: true });
}

/** Forgets what `watchAbort` was told. */
export function unwatchAbort(signal: AbortSignal, abortable: Abortable): void {
  watched.get(signal)?.delete(abortable);
}
