import { describe, expect, it } from 'vitest';
import { cutUtf8 } from './cut-utf8.js';

describe('cutUtf8', () => {
  it.each(['é', '€', '😀'])('drops only the part of %s that was cut off', (character) => {
    const whole = Buffer.from(`ab${character}`);
    expect(cutUtf8(whole)).toEqual(whole);
    for (let length = 3; length < whole.length; length += 1) {
      expect(cutUtf8(whole.subarray(0, length))).toEqual(Buffer.from('ab'));
    }
  });

  it.each([[[]], [[0x80, 0x80, 0x80, 0x80, 0x80]], [[0x61, 0xff]], [[0xc0]], [[0xf8, 0x80]]])(
    'leaves bytes that are no UTF-8 alone: %j',
    (bytes) => {
      expect(cutUtf8(Buffer.from(bytes))).toEqual(Buffer.from(bytes));
    },
  );
});
