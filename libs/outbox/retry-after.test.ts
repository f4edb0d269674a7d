import { describe, expect, it } from 'vitest';
import { parseRetryAfter } from './retry-after.js';

const NOW = Date.parse('2026-11-30T12:00:00Z');
const HOUR_MS = 3_600_000;

describe('[H07] Retry-After', () => {
  it.each([
    ['2', 2_000],
    [' 120 ', 120_000],
    ['9999999999', HOUR_MS],
    ['9'.repeat(400), HOUR_MS],
    ['Mon, 30 Nov 2026 12:00:03 GMT', 3_000],
    ['Fri, 31 Dec 9999 23:59:59 GMT', HOUR_MS],
  ])('%s asks for a wait', (text, waitMs) => {
    expect(parseRetryAfter(text, NOW)).toBe(waitMs);
  });

  it.each([
    null,
    '',
    '0',
    '-5',
    '1.5',
    '1e3',
    '0x10',
    'soon',
    '2, 5',
    '２',
    'Mon, 30 Nov 2026 11:59:59 GMT',
    'Mon, 31 Feb 2026 99:99:99 GMT',
    'Mon, 30 Nov 2026 12:00:03 GMT, Mon, 30 Nov 2026 12:00:09 GMT',
    '2026-11-30T13:00:00Z',
    'tomorrow 2027',
  ])('%j asks for nothing', (text) => {
    expect(parseRetryAfter(text, NOW)).toBeNull();
  });
});
