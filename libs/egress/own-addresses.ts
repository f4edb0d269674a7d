import os from 'node:os';

const REREAD_AFTER_MS = 60_000;

let known: ReadonlySet<string> = new Set();
let readAtMs = Number.NEGATIVE_INFINITY;

/** The addresses of this machine's own interfaces, read anew when a minute old. */
export function ownAddresses(nowMs: number = performance.now()): ReadonlySet<string> {
  if (nowMs - readAtMs > REREAD_AFTER_MS) {
    known = new Set(
      Object.values(os.networkInterfaces()).flatMap((list) => (list ?? []).map((entry) => entry.address)),
    );
    readAtMs = nowMs;
  }
  return known;
}
