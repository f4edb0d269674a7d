import { createSecretKey, type KeyObject } from 'node:crypto';
import { readFileSync } from 'node:fs';

/** A key-encryption key and its number. As a KeyObject it shows none of its bytes in a log, an error or JSON. */
export interface EncryptionKey {
  readonly version: number;
  readonly key: KeyObject;
}

/** Where the keys stand: in the environment itself, or in a file that it names. */
export interface EncryptionKeySource {
  readonly inline: string | undefined;
  readonly file: string | undefined;
}

const NAME = 'WAYBILL_ENCRYPTION_KEY';
const FILE_NAME = 'WAYBILL_ENCRYPTION_KEY_FILE';
const KEYS_MAX = 16;
const FILE_CHARACTERS_MAX = 4_096;
const VERSION_MAX = 2_147_483_647;
const FORM = `must be the base64 of 32 bytes, or several as 2:BASE64,1:BASE64 with the newest first; make one by: openssl rand -base64 32`;
// Node's decoder skips what it does not know and stops early without an error.
const BASE64_OF_32_BYTES = /^[A-Za-z0-9+/]{43}=$/;
const ENTRY = /^(?:([1-9][0-9]{0,9}):)?([^:]*)$/;

/**
 * The key-encryption keys of the environment or of the file it names, the one for new wraps first; none when neither
 * is set. What is wrong with them goes to `faults`, which never hold a piece of a key.
 */
export function readEncryptionKeys(
  { inline, file }: EncryptionKeySource,
  faults: string[],
): readonly EncryptionKey[] {
  if (inline && file) {
    faults.push(`${NAME} and ${FILE_NAME} must not both be set`);
    return [];
  }
  if (file) return readFile(file, faults);
  return inline ? parseKeys(NAME, inline, faults) : [];
}

function readFile(path: string, faults: string[]): readonly EncryptionKey[] {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    faults.push(`${FILE_NAME} cannot be read (${(error as NodeJS.ErrnoException).code})`);
    return [];
  }
  if (text.length <= FILE_CHARACTERS_MAX) return parseKeys(FILE_NAME, text.trim(), faults);
  faults.push(`${FILE_NAME} holds more than ${FILE_CHARACTERS_MAX} characters: ${FORM}`);
  return [];
}

function parseKeys(setting: string, text: string, faults: string[]): readonly EncryptionKey[] {
  const entries = text.split(',').map((entry) => entry.trim());
  const keys = entries.map(parseEntry).filter((key) => key !== null);
  const versions = keys.map(({ version }) => version);
  // Of several keys each says which it is.
  const isNumbered = entries.length === 1 || entries.every((entry) => entry.includes(':'));
  if (keys.length < entries.length || keys.length > KEYS_MAX || !isNumbered) {
    faults.push(`${setting} ${FORM}`);
    return [];
  }
  if (new Set(versions).size < versions.length) {
    faults.push(`${setting} must give each key a version of its own, not ${versions.join(', ')}`);
    return [];
  }
  return keys;
}

/** One `version:base64`; a key without a version is the first. */
function parseEntry(text: string): EncryptionKey | null {
  const [, digits = '1', base64 = ''] = ENTRY.exec(text) ?? [];
  const version = Number(digits);
  if (!BASE64_OF_32_BYTES.test(base64) || version > VERSION_MAX) return null;
  const bytes = Buffer.from(base64, 'base64');
  // The last digit before the padding has two bits to spare: set, they would be a second spelling.
  if (bytes.toString('base64') !== base64) return null;
  return { version, key: createSecretKey(bytes) };
}
