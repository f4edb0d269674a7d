import { describe, expect, it } from 'vitest';
import { readRetryPolicy, retryWaitMs, type RetryPolicy } from './retry-policy.js';

const platform: RetryPolicy = { waits: { kind: 'schedule', delaysMs: [5_000] }, jitter: 0.2, retryOn: 'any' };
const DAYS_30_MS = 30 * 86_400_000;

const stored = (fields: object) => readRetryPolicy(fields, platform);

describe('a retry policy', () => {
  it('[row 31] with full jitter, base 2 s and cap 3600 s waits within [0, min(2 × 2^(n−1), 3600)] for n = 1..20', () => {
    const policy = stored({ initial_seconds: 2, cap_seconds: 3_600, max_attempts: 21, jitter: 'full' });
    for (let failures = 1; failures <= 20; failures += 1) {
      const longest = Math.min(2 * 2 ** (failures - 1), 3_600) * 1_000;
      expect(retryWaitMs(policy, failures, 0)).toBe(0);
      expect(retryWaitMs(policy, failures, 0.5)).toBe(longest / 2);
      expect(retryWaitMs(policy, failures, 0.999_999_999_99)).toBe(longest);
    }
    expect(retryWaitMs(policy, 21, 0.5)).toBeNull();
  });

  it('[row 32] without jitter and from 10 s waits 10, 20, 40, 80 s, and 3600 s at most', () => {
    const policy = stored({ initial_seconds: 10, cap_seconds: 3_600, max_attempts: 100, jitter: 0 });
    expect([1, 2, 3, 4, 9, 10, 50, 99].map((failures) => retryWaitMs(policy, failures, 0.9))).toEqual(
      [10, 20, 40, 80, 2_560, 3_600, 3_600, 3_600].map((seconds) => seconds * 1_000),
    );
  });

  it('[row 33] by a schedule has one attempt more than waits', () => {
    const policy = stored({ schedule_seconds: [1, 2, 3], jitter: 0 });
    expect([1, 2, 3, 4].map((failures) => retryWaitMs(policy, failures, 0.5))).toEqual([
      1_000,
      2_000,
      3_000,
      null,
    ]);
  });

  it.each([
    null,
    5,
    'x',
    [],
    {},
    { schedule_seconds: [] },
    { schedule_seconds: [1, null] },
    { initial_seconds: 1 },
  ])('that was stored as %j is the platform’s', (garbage) => {
    expect(readRetryPolicy(garbage, platform).waits).toEqual(platform.waits);
  });

  it.each([
    { schedule_seconds: [0, -1, 1e12, 1e308] },
    { schedule_seconds: Array.from({ length: 10_000 }, () => 0) },
    { initial_seconds: 0, cap_seconds: 0, max_attempts: 1e9 },
    { initial_seconds: 1e300, cap_seconds: 1e300, max_attempts: 2 ** 31 },
    { initial_seconds: 1, cap_seconds: 1e12, max_attempts: 0.5 },
  ])('beyond all bounds, written by SQL, is finite, never at once and ends: %#', (fields) => {
    const policy = stored({ ...fields, jitter: 7 });
    expect(policy.jitter).toBe(platform.jitter);
    const waits: number[] = [];
    for (let failures = 1; ; failures += 1) {
      const wait = retryWaitMs(policy, failures, 0.5);
      if (wait === null) break;
      waits.push(wait);
    }
    expect(waits.length).toBeLessThanOrEqual(99);
    for (const wait of waits) {
      expect(wait).toBeGreaterThanOrEqual(100);
      expect(wait).toBeLessThanOrEqual(DAYS_30_MS);
    }
    // Counts near 2^31 come from SQL as well.
    for (const failures of [2 ** 31 - 1, -5]) {
      const wait = retryWaitMs(policy, failures, 0.5);
      expect(wait === null || (Number.isFinite(wait) && wait >= 100)).toBe(true);
    }
  });
});
