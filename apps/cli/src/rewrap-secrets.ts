import { assertSchemaRevision, type Config } from '#runtime';
import { openPool } from './with-database.js';

/** One transaction holds so many rows for so long: a few milliseconds. */
const BATCH_SIZE = 200;

/** It may read secrets anyway; the operator's role is spared that. */
const ROLE = 'waybill_dispatcher';

/** What `waybill secrets rewrap` did. */
export interface RewrapReport {
  /** The version that everything is wrapped by now. */
  readonly version: number;
  readonly rewrapped: number;
  readonly left: number;
  /** Secrets that stood in clear until now. */
  readonly sealed: number;
}

/**
 * Wraps all data keys by the newest key, and seals what is in clear still. May be cut short and run again. `say` hears
 * of each batch how many are left.
 */
export async function rewrapSecrets(config: Config, say: (line: string) => void): Promise<RewrapReport> {
  // Loaded here: no other command needs it.
  const { assertEncryptionKey, createKeyring, rewrapDataKeys, sealClearSecrets } = await import('#secrets');
  const keyring = createKeyring(config.encryptionKeys);
  const pool = openPool(config.databaseUrl, ROLE);
  try {
    await assertSchemaRevision(pool, ROLE);
    await assertEncryptionKey(pool, keyring);
    const sealed = await sealClearSecrets(pool, keyring);
    const { rewrapped, left } = await rewrapDataKeys(pool, keyring, {
      batchSize: BATCH_SIZE,
      onProgress: (progress) => say(`${progress.rewrapped} re-wrapped, ${progress.left} left`),
    });
    return { version: keyring.newest, rewrapped, left, sealed };
  } finally {
    await pool.end();
  }
}
