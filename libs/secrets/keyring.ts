import { createSecretKey, type KeyObject } from 'node:crypto';
import { AppError, type EncryptionKey } from '#runtime';
import { keyVersionOf, open, seal, unreadable, type Place } from './envelope.js';

/**
 * The key-encryption keys of this process. It wraps data keys and opens canaries; nothing else is ever sealed by a
 * key-encryption key itself.
 */
export interface Keyring {
  /** The version that new wraps are made with. */
  readonly newest: number;
  readonly versions: readonly number[];
  /** Seals with the newest key. */
  seal(place: Place, plain: Uint8Array): Buffer;
  /** Opens with the key that the sealed value names; throws `secret_unreadable` when it is not here, or does not fit. */
  open(place: Place, sealed: Buffer): Buffer;
}

/** Makes a keyring of the configured keys, newest first; throws `encryption_key_missing` when there are none. */
export function createKeyring(keys: readonly EncryptionKey[]): Keyring {
  const [first] = keys;
  if (first === undefined) {
    throw new AppError(
      'encryption_key_missing',
      'WAYBILL_ENCRYPTION_KEY is not set: the key to the endpoint secrets in the database. Make one by `openssl rand -base64 32`, ' +
        'give every api and dispatcher the same (or its file, by WAYBILL_ENCRYPTION_KEY_FILE), and keep a copy: without it the secrets are lost.',
    );
  }
  const byVersion = new Map(keys.map(({ version, key }) => [version, key]));
  return {
    newest: first.version,
    versions: [...byVersion.keys()],
    seal: (place, plain) => seal(first.key, first.version, place, plain),
    open(place, sealed) {
      const version = keyVersionOf(sealed);
      const key = byVersion.get(version);
      if (key === undefined) throw unreadable(`it needs version ${version} of WAYBILL_ENCRYPTION_KEY`);
      return open(key, place, sealed);
    },
  };
}

/** Wraps a tenant's data key with the newest key-encryption key. */
export function wrapDataKey(keyring: Keyring, tenantId: string, version: number, dataKey: Buffer): Buffer {
  return keyring.seal(placeOf(tenantId, version), dataKey);
}

/** The bytes of a tenant's wrapped data key, to be wrapped anew. */
export function unwrapDataKeyBytes(
  keyring: Keyring,
  tenantId: string,
  version: number,
  wrapped: Buffer,
): Buffer {
  return keyring.open(placeOf(tenantId, version), wrapped);
}

/** A tenant's data key, ready for use; throws `secret_unreadable` when it was moved, changed or wrapped by another key. */
export function unwrapDataKey(
  keyring: Keyring,
  tenantId: string,
  version: number,
  wrapped: Buffer,
): KeyObject {
  return createSecretKey(unwrapDataKeyBytes(keyring, tenantId, version, wrapped));
}

function placeOf(tenantId: string, version: number): Place {
  return { table: 'tenant_data_keys', column: 'wrapped_key', tenantId, rowId: String(version) };
}
