import { describe, expect, it } from 'vitest';
import { arrayItems, quotedArray, plainArray } from './array-text.js';

describe('an array as PostgreSQL reads it', () => {
  it('keeps quotes, backslashes, commas, braces, empty texts and the word NULL apart from what they could mean', () => {
    const values = ['a', '', 'NULL', null, '{"k":"v, w"}', String.raw`\x6162`, 'é'];
    expect(quotedArray(values)).toBe(String.raw`{"a","","NULL",NULL,"{\"k\":\"v, w\"}","\\x6162","é"}`);
  });

  it('is empty for nothing', () => {
    expect([quotedArray([]), plainArray([])]).toEqual(['{}', '{}']);
  });

  it('gives back its ids', () => {
    expect([arrayItems('{a,b}'), arrayItems('{}'), arrayItems(null)]).toEqual([['a', 'b'], [], []]);
  });
});
