import { createSecretKey, randomBytes, type KeyObject } from 'node:crypto';

const PREFIX = 'whsec_';
const GENERATED_BYTES = 24;
const MIN_BYTES = 24;
const MAX_BYTES = 64;
const PADDED_BASE64 = /^[A-Za-z0-9+/]+={0,2}$/;

/** The bytes of a secret, or why its text is refused. The reason never repeats the text. */
export type SecretResult = { ok: true; key: Buffer } | { ok: false; reason: string };

/** Makes a new secret: `whsec_` and the base64 of 24 random bytes. */
export function generateSecret(): string {
  return PREFIX + randomBytes(GENERATED_BYTES).toString('base64');
}

/** Reads a secret that someone wants to store: `whsec_`, padded standard base64, 24 to 64 bytes, nothing else. */
export function parseSecret(text: string): SecretResult {
  if (!text.startsWith(PREFIX)) return { ok: false, reason: `a secret starts with ${PREFIX}` };
  const key = decodeBase64(text.slice(PREFIX.length));
  if (key === null) return { ok: false, reason: `after ${PREFIX} comes padded standard base64` };
  if (key.length < MIN_BYTES || key.length > MAX_BYTES) {
    return { ok: false, reason: `a secret holds ${MIN_BYTES} to ${MAX_BYTES} bytes, this one ${key.length}` };
  }
  return { ok: true, key };
}

/**
 * Gives the key bytes of any secret a signer or verifier meets: `whsec_` text is decoded whatever its size,
 * other text is the key itself, as UTF-8. Never use it to accept a secret for storage.
 */
export function secretKey(text: string): SecretResult {
  if (text === '') return { ok: false, reason: 'the secret is empty' };
  if (!text.startsWith(PREFIX)) return { ok: true, key: Buffer.from(text, 'utf8') };
  const encoded = text.slice(PREFIX.length);
  if (encoded === '') return { ok: false, reason: `nothing follows ${PREFIX}` };
  const padded = encoded.padEnd(Math.ceil(encoded.length / 4) * 4, '=');
  const key = decodeBase64(padded);
  return key === null ? { ok: false, reason: `after ${PREFIX} comes base64` } : { ok: true, key };
}

/** Turns key bytes into the ready key that `sign` takes, so that a caller prepares each secret once. */
export function signingKey(bytes: Uint8Array): KeyObject {
  return createSecretKey(bytes);
}

// Node's decoder skips what it does not know and stops early without an error: only text that comes back the same
// from a second encoding was base64.
function decodeBase64(text: string): Buffer | null {
  if (!PADDED_BASE64.test(text)) return null;
  const bytes = Buffer.from(text, 'base64');
  return bytes.toString('base64') === text ? bytes : null;
}
