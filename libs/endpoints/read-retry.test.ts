import { describe, expect, it } from 'vitest';
import { readRetry } from './read-retry.js';

describe('a retry policy', () => {
  it.each([
    ['null', null, null],
    ['the default', { preset: 'default' }, null],
    [
      'outbox',
      { preset: 'outbox' },
      { initial_seconds: 2, cap_seconds: 3_600, max_attempts: 16, jitter: 'full', retry_on: 'any' },
    ],
    [
      'form',
      { preset: 'form' },
      { initial_seconds: 10, cap_seconds: 3_600, max_attempts: 5, jitter: 0, retry_on: 'transient' },
    ],
    [
      'a schedule',
      { schedule_seconds: [5, 300, 0.1, 2_592_000] },
      { schedule_seconds: [5, 300, 0.1, 2_592_000], jitter: 0.2, retry_on: 'any' },
    ],
    [
      'a schedule in parts of a millisecond',
      { schedule_seconds: [0.1004, 1 / 3], jitter: 1, retry_on: 'transient' },
      { schedule_seconds: [0.1, 0.333], jitter: 1, retry_on: 'transient' },
    ],
    [
      'one attempt',
      { initial_seconds: 0.1, cap_seconds: 0.1, max_attempts: 1, jitter: 'full' },
      { initial_seconds: 0.1, cap_seconds: 0.1, max_attempts: 1, jitter: 'full', retry_on: 'any' },
    ],
    [
      'a hundred attempts',
      { initial_seconds: 2_592_000, cap_seconds: 2_592_000, max_attempts: 100, retry_on: 'any', jitter: 0 },
      { initial_seconds: 2_592_000, cap_seconds: 2_592_000, max_attempts: 100, retry_on: 'any', jitter: 0 },
    ],
  ])('is stored complete: %s', (_what, asked, stored) => {
    expect(readRetry(asked)).toEqual(stored);
    // What is stored is itself a policy that may be written.
    expect(readRetry(stored)).toEqual(stored);
  });

  it('takes 50 waits', () => {
    const schedule_seconds = Array.from({ length: 50 }, (_, index) => index + 1);
    expect(readRetry({ schedule_seconds })).toMatchObject({ schedule_seconds });
  });
});
