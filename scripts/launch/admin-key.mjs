import { readFileSync, renameSync, writeFileSync } from 'node:fs';

/** Keeps the key for this user alone; the file appears whole or not at all. */
export function keepAdminKey(path, key) {
  const draft = `${path}.draft-${process.pid}`;
  writeFileSync(draft, `${key}\n`, { mode: 0o600 });
  renameSync(draft, path);
}

/** Reads the kept key, or returns null. */
export function readAdminKey(path) {
  try {
    return readFileSync(path, 'utf8').trim() || null;
  } catch {
    return null;
  }
}
