import { createHash, randomBytes } from 'node:crypto';
import { crc32 } from 'node:zlib';

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const SECRET_BYTES = 32;
const SECRET_CHARACTERS = 43;
const CHECKSUM_CHARACTERS = 6;
const KEY_TEXT = /^wb_([a-z0-9]{1,16})_([0-9a-f]{32})_([0-9A-Za-z]{43})([0-9A-Za-z]{6})$/;

/** Which installation a key is of, where nothing else is configured. */
export const KEY_ENV_DEFAULT = 'live';

/**
 * The text of a key: `wb_<env>_<key id>_<secret><checksum>`. The env tells people and scanners the keys of one installation
 * from those of another; the checksum lets them (and us, before any look-up) tell a key from what only looks like one.
 */
export function formatKeyText(
  keyId: string,
  env: string = KEY_ENV_DEFAULT,
  secret: Buffer = randomBytes(SECRET_BYTES),
): string {
  const body = `wb_${env}_${keyId.replaceAll('-', '')}_${base62(secret, SECRET_CHARACTERS)}`;
  return body + checksum(body);
}

/** The key's id when the text has the form and checksum of a key of this env, else null. */
export function readKeyText(text: string, env: string = KEY_ENV_DEFAULT): { keyId: string } | null {
  const match = KEY_TEXT.exec(text);
  if (match?.[1] !== env || checksum(text.slice(0, -CHECKSUM_CHARACTERS)) !== match[4]) return null;
  const hex = match[2]!;
  return {
    keyId: `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`,
  };
}

/** What is stored of a key. The secret has 256 random bits, so a slow hash would add nothing. */
export function digestKeyText(text: string): Buffer {
  return createHash('sha256').update(text, 'utf8').digest();
}

function checksum(body: string): string {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(crc32(body));
  return base62(bytes, CHECKSUM_CHARACTERS);
}

function base62(bytes: Buffer, characters: number): string {
  let rest = BigInt(`0x${bytes.toString('hex')}`);
  let text = '';
  for (let place = 0; place < characters; place += 1) {
    text = BASE62[Number(rest % 62n)]! + text;
    rest /= 62n;
  }
  return text;
}
