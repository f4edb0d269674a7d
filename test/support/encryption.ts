import { createSecretKey } from 'node:crypto';

import { createKeyring, type Keyring } from '#secrets';

/** What apps that tests boot get as WAYBILL_ENCRYPTION_KEY: version 1. */
export const TEST_ENCRYPTION_KEY = keyOf(0x5a);

/** The base64 of 32 equal bytes, to be a key-encryption key. */
export function keyOf(byte: number): string {
  return Buffer.alloc(32, byte).toString('base64');
}

/** The keyring of the booted apps, for what a test stores by the product's own functions. */
export function testKeyring(): Keyring {
  const key = createSecretKey(Buffer.from(TEST_ENCRYPTION_KEY, 'base64'));
  return createKeyring([{ version: 1, key }]);
}
