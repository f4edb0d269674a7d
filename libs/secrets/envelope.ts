import { createCipheriv, createDecipheriv, randomBytes, type KeyObject } from 'node:crypto';
import { AppError } from '#runtime';

/** Where a sealed value belongs. It opens there and nowhere else: not in another row, column, table or tenant. */
export interface Place {
  readonly table: string;
  readonly column: string;
  /** Empty for what no tenant owns. */
  readonly tenantId: string;
  readonly rowId: string;
}

// One bytea: format (1), version of the key (4, big endian), nonce (12), tag (16), ciphertext.
const FORMAT = 1;
const ALGORITHM = 'aes-256-gcm';
const VERSION_AT = 1;
const NONCE_AT = 5;
const TAG_AT = 17;
const TEXT_AT = 33;
const NONCE_BYTES = TAG_AT - NONCE_AT;
const TAG_BYTES = TEXT_AT - TAG_AT;

/** How many bytes a sealed value is longer than what is in it. */
export const SEAL_BYTES = TEXT_AT;

/** Encrypts bytes for one place under the key of this version, by AES-256-GCM with a random nonce. */
export function seal(key: KeyObject, keyVersion: number, place: Place, plain: Uint8Array): Buffer {
  const head = Buffer.alloc(NONCE_AT);
  head[0] = FORMAT;
  head.writeUInt32BE(keyVersion, VERSION_AT);
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv(ALGORITHM, key, nonce, { authTagLength: TAG_BYTES });
  cipher.setAAD(additionalData(place, keyVersion));
  const text = Buffer.concat([cipher.update(plain), cipher.final()]);
  return Buffer.concat([head, nonce, cipher.getAuthTag(), text]);
}

/** The version of the key that a sealed value needs; throws `secret_unreadable` for what was never sealed by us. */
export function keyVersionOf(sealed: Buffer): number {
  if (sealed.length < TEXT_AT || sealed[0] !== FORMAT) throw unreadable('it is of no known format');
  return sealed.readUInt32BE(VERSION_AT);
}

/** Decrypts what was sealed for this place; throws `secret_unreadable` when a bit, the place or the key is another. */
export function open(key: KeyObject, place: Place, sealed: Buffer): Buffer {
  const keyVersion = keyVersionOf(sealed);
  const decipher = createDecipheriv(ALGORITHM, key, sealed.subarray(NONCE_AT, TAG_AT), {
    authTagLength: TAG_BYTES,
  });
  decipher.setAAD(additionalData(place, keyVersion));
  decipher.setAuthTag(sealed.subarray(TAG_AT, TEXT_AT));
  try {
    return Buffer.concat([decipher.update(sealed.subarray(TEXT_AT)), decipher.final()]);
  } catch (error) {
    throw unreadable('it was changed, or sealed for another place or by another key', error);
  }
}

/** The error of a value that does not open; `reason` must not say what is in it. */
export function unreadable(reason: string, cause?: unknown): AppError {
  return new AppError('secret_unreadable', `A sealed value cannot be opened: ${reason}.`, { cause });
}

function additionalData({ table, column, tenantId, rowId }: Place, keyVersion: number): Buffer {
  return Buffer.from([table, column, tenantId, rowId, keyVersion].join('|'));
}
