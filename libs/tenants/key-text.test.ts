import { describe, expect, it } from 'vitest';
import { digestKeyText, formatKeyText, readKeyText } from './key-text.js';

const KEY_ID = '0190a5c2-7e3a-7cde-8f01-23456789abcd';

describe('key text', () => {
  it('carries the key id and reads back', () => {
    const text = formatKeyText(KEY_ID);
    expect(text).toMatch(/^wb_live_0190a5c27e3a7cde8f0123456789abcd_[0-9A-Za-z]{49}$/);
    expect(readKeyText(text)).toEqual({ keyId: KEY_ID });
  });

  it('holds the largest and the smallest secret in the same length', () => {
    for (const fill of [0x00, 0xff]) {
      const text = formatKeyText(KEY_ID, 'live', Buffer.alloc(32, fill));
      expect(text).toHaveLength(8 + 32 + 1 + 49);
      expect(readKeyText(text)).not.toBeNull();
    }
  });

  it('is refused when any one character is changed', () => {
    const text = formatKeyText(KEY_ID, 'live', Buffer.alloc(32, 7));
    for (let place = 0; place < text.length; place += 1) {
      const other = text[place] === '1' ? '2' : '1';
      expect(readKeyText(text.slice(0, place) + other + text.slice(place + 1)), `place ${place}`).toBeNull();
    }
  });

  it('names the env that it is of, and is no key of another', () => {
    const text = formatKeyText(KEY_ID, 'test');
    expect(text).toMatch(/^wb_test_[0-9a-f]{32}_[0-9A-Za-z]{49}$/);
    expect(readKeyText(text, 'test')).toEqual({ keyId: KEY_ID });
    expect(readKeyText(text, 'live')).toBeNull();
    // With a checksum that is right again, it still is none.
    expect(readKeyText(formatKeyText(KEY_ID, 'live'), 'test')).toBeNull();
  });

  it.each(['', 'wb_live_', 'é'.repeat(90), ` ${formatKeyText(KEY_ID)}`, `${formatKeyText(KEY_ID)}\n`])(
    'refuses %j',
    (text) => {
      expect(readKeyText(text)).toBeNull();
    },
  );

  it('is kept as 32 bytes that differ for another secret', () => {
    const one = digestKeyText(formatKeyText(KEY_ID));
    expect(one).toHaveLength(32);
    expect(one.equals(digestKeyText(formatKeyText(KEY_ID)))).toBe(false);
  });
});
