import { createSecretKey } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { keyVersionOf } from './envelope.js';
import { createKeyring, unwrapDataKey, unwrapDataKeyBytes, wrapDataKey } from './keyring.js';

const keyOf = (version: number, fill = version) => ({
  version,
  key: createSecretKey(Buffer.alloc(32, fill)),
});
const TENANT = '01900000-0000-7000-8000-000000000001';
const DATA_KEY = Buffer.alloc(32, 0xdd);

describe('a keyring', () => {
  it('without a key says how to make one', () => {
    expect(() => createKeyring([])).toThrow(
      expect.objectContaining({
        code: 'encryption_key_missing',
        message: expect.stringMatching(/^WAYBILL_ENCRYPTION_KEY is not set.*`openssl rand -base64 32`/),
      }),
    );
  });

  it('wraps with its first key, and unwraps with whichever the wrapped key names', () => {
    const before = createKeyring([keyOf(1)]);
    const between = createKeyring([keyOf(2), keyOf(1)]);
    const wrapped = wrapDataKey(before, TENANT, 1, DATA_KEY);
    expect(wrapped).toHaveLength(65);
    expect(unwrapDataKey(between, TENANT, 1, wrapped).export()).toEqual(DATA_KEY);
    const anew = wrapDataKey(between, TENANT, 1, unwrapDataKeyBytes(between, TENANT, 1, wrapped));
    expect([wrapped, anew].map(keyVersionOf)).toEqual([1, 2]);
    expect(unwrapDataKey(createKeyring([keyOf(2)]), TENANT, 1, anew).export()).toEqual(DATA_KEY);
    expect(() => unwrapDataKey(before, TENANT, 1, anew)).toThrow(/version 2 of WAYBILL_ENCRYPTION_KEY/);
  });

  it('unwraps nothing of another tenant, of another version, or by another key of the same number', () => {
    const keyring = createKeyring([keyOf(1)]);
    const wrapped = wrapDataKey(keyring, TENANT, 1, DATA_KEY);
    const refused = expect.objectContaining({ code: 'secret_unreadable' });
    expect(() => unwrapDataKey(keyring, TENANT.replace(/1$/, '2'), 1, wrapped)).toThrow(refused);
    expect(() => unwrapDataKey(keyring, TENANT, 2, wrapped)).toThrow(refused);
    expect(() => unwrapDataKey(createKeyring([keyOf(1, 9)]), TENANT, 1, wrapped)).toThrow(refused);
  });
});
