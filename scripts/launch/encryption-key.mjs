import { randomBytes } from 'node:crypto';
import { chmodSync, existsSync, linkSync, rmSync, writeFileSync } from 'node:fs';

/**
 * Makes the key of the embedded default, once, for this user alone; the file appears whole or not at all. A database
 * that was started with a key before gets no other one: what is sealed in it would not open.
 */
export async function keepEncryptionKey(path, wasStartedBefore) {
  if (existsSync(path)) {
    chmodSync(path, 0o600);
    return;
  }
  if (await wasStartedBefore()) {
    throw new Error(
      `Waybill does not start: ${path} is gone, the key to the endpoint secrets in the database beside it. Restore it from a copy.`,
    );
  }
  const draft = `${path}.draft-${process.pid}`;
  writeFileSync(draft, `1:${randomBytes(32).toString('base64')}\n`, { mode: 0o600 });
  try {
    // Unlike a rename it never takes the place of a key that came in between.
    linkSync(draft, path);
  } finally {
    rmSync(draft);
  }
}
