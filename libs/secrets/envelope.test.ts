import { createSecretKey, webcrypto } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { keyVersionOf, open, seal, SEAL_BYTES, type Place } from './envelope.js';

const KEY_BYTES = Buffer.alloc(32, 0x42);
const KEY = createSecretKey(KEY_BYTES);
const PLACE: Place = {
  table: 'endpoint_secrets',
  column: 'sealed_secret',
  tenantId: '01900000-0000-7000-8000-000000000001',
  rowId: '01900000-0000-7000-8000-000000000002/01900000-0000-7000-8000-000000000003',
};
const SECRET = Buffer.from('whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw');
/** Made once by Web Crypto; it has to open as long as there is format 1. */
const KEPT =
  '0100000003000102030405060708090a0b6d515a09ee5f5873e7f64f69d291a2b172b6e2b8d273bf6dd6577d61e99a106243ef9a1dca1cb2ad2bd06c77c05dd2cd18dac5c32247';

/** The same by another implementation, from the description in ADR 10. */
async function sealByHand(
  keyVersion: number,
  place: Place,
  nonce: Uint8Array,
  plain: Uint8Array,
): Promise<Buffer> {
  const key = await webcrypto.subtle.importKey('raw', KEY_BYTES, 'AES-GCM', false, ['encrypt']);
  const additionalData = Buffer.from(
    `${place.table}|${place.column}|${place.tenantId}|${place.rowId}|${keyVersion}`,
  );
  const made = Buffer.from(
    await webcrypto.subtle.encrypt(
      { name: 'AES-GCM', iv: nonce, additionalData, tagLength: 128 },
      key,
      plain,
    ),
  );
  const version = Buffer.alloc(4);
  version.writeUInt32BE(keyVersion);
  // Web Crypto puts the tag behind the text.
  return Buffer.concat([Buffer.of(1), version, nonce, made.subarray(-16), made.subarray(0, -16)]);
}

const expectUnreadable = (work: () => unknown): string => {
  try {
    work();
  } catch (error) {
    expect(error).toMatchObject({ name: 'AppError', code: 'secret_unreadable' });
    return (error as Error).message;
  }
  throw new Error('it opened');
};

describe('a sealed value', () => {
  it('opens in its place, and opens nowhere that its bytes are printed', () => {
    const sealed = seal(KEY, 3, PLACE, SECRET);
    expect(open(KEY, PLACE, sealed)).toEqual(SECRET);
    expect(keyVersionOf(sealed)).toBe(3);
    expect(sealed).toHaveLength(SEAL_BYTES + SECRET.length);
    expect(sealed.includes(SECRET.subarray(0, 8))).toBe(false);
  });

  it('is what another implementation makes of the same nonce, in both directions', async () => {
    const nonce = Buffer.from('000102030405060708090a0b', 'hex');
    const byHand = await sealByHand(3, PLACE, nonce, SECRET);
    expect(open(KEY, PLACE, byHand)).toEqual(SECRET);
    const sealed = seal(KEY, 3, PLACE, SECRET);
    expect(await sealByHand(3, PLACE, sealed.subarray(5, 17), SECRET)).toEqual(sealed);
    expect(byHand.toString('hex')).toBe(KEPT);
  });

  it('has a nonce of its own each time', () => {
    const nonces = Array.from({ length: 500 }, () =>
      seal(KEY, 1, PLACE, SECRET).subarray(5, 17).toString('hex'),
    );
    expect(new Set(nonces).size).toBe(500);
  });

  it('does not open when any bit of any byte is another', () => {
    const sealed = seal(KEY, 3, PLACE, SECRET);
    for (let at = 0; at < sealed.length; at += 1) {
      for (const bit of [1, 0x80]) {
        const tampered = Buffer.from(sealed);
        tampered[at]! ^= bit;
        expect(expectUnreadable(() => open(KEY, PLACE, tampered))).not.toContain('whsec_');
      }
    }
  });

  it('does not open when it is cut at any length, or longer', () => {
    const sealed = seal(KEY, 3, PLACE, SECRET);
    for (let length = 0; length < sealed.length; length += 1)
      expectUnreadable(() => open(KEY, PLACE, sealed.subarray(0, length)));
    expectUnreadable(() => open(KEY, PLACE, Buffer.concat([sealed, Buffer.of(0)])));
  });

  it.each([
    ['table', { table: 'tenant_data_keys' }],
    ['column', { column: 'secret' }],
    ['tenant', { tenantId: '01900000-0000-7000-8000-000000000009' }],
    ['row', { rowId: '01900000-0000-7000-8000-000000000009/01900000-0000-7000-8000-000000000003' }],
  ])('does not open in another %s', (_, other) => {
    const sealed = seal(KEY, 3, PLACE, SECRET);
    expectUnreadable(() => open(KEY, { ...PLACE, ...other }, sealed));
  });

  it('does not open by another key, or as one of another key version', () => {
    const sealed = seal(KEY, 3, PLACE, SECRET);
    expectUnreadable(() => open(createSecretKey(Buffer.alloc(32, 0x43)), PLACE, sealed));
    const renumbered = Buffer.from(sealed);
    renumbered.writeUInt32BE(4, 1);
    expectUnreadable(() => open(KEY, PLACE, renumbered));
  });

  it('of another format is named as such', () => {
    expect(expectUnreadable(() => keyVersionOf(Buffer.alloc(100, 2)))).toContain('no known format');
    expect(expectUnreadable(() => keyVersionOf(Buffer.alloc(0)))).toContain('no known format');
  });

  it('may be empty', () => {
    expect(open(KEY, PLACE, seal(KEY, 1, PLACE, Buffer.alloc(0)))).toHaveLength(0);
  });
});
