import { describe, expect, it } from 'vitest';
import { circuitLessons } from './circuit-lessons.js';
import type { AttemptLesson, SettledAttempt } from './types.js';

const LESSON: AttemptLesson = {
  succeeded: false,
  policy: { failures: 5, failureRatio: null, openMs: 30_000 },
  tripped: false,
  holdMs: null,
  gone: false,
  isProbe: false,
};

const settled = (endpointId: string, changes: Partial<AttemptLesson> | null, claimToken = 'token') =>
  ({
    tenantId: 't',
    endpointId,
    claimToken,
    lesson: changes === null ? null : { ...LESSON, ...changes },
  }) as SettledAttempt;

describe('what a batch teaches', () => {
  it('is one lesson an endpoint, in the order of their keys, and none from a lapsed lease', () => {
    const batch = [settled('b', {}), settled('a', {}), settled('c', null), settled('b', {})];
    expect(circuitLessons(batch).map(({ endpointId, failures }) => [endpointId, failures])).toEqual([
      ['a', 1],
      ['b', 2],
    ]);
  });

  it('counts the failures since the last success', () => {
    const batch = [true, false, true, false, false].map((failed) => settled('a', { succeeded: !failed }));
    expect(circuitLessons(batch)[0]).toMatchObject({ succeeded: true, failures: 0 });
    expect(circuitLessons(batch.slice(0, 3))[0]).toMatchObject({ succeeded: true, failures: 1 });
  });

  it('counts no failure that came with a Retry-After', () => {
    const batch = [settled('a', {}), settled('a', { holdMs: 1_000 }), settled('a', {})];
    expect(circuitLessons(batch)[0]).toMatchObject({ failures: 2, holdMs: 1_000 });
    expect(circuitLessons(batch.slice(1, 2))[0]).toMatchObject({ failures: 0, succeeded: false });
  });

  it('keeps the longest hold, a 410, a reached ratio and the probe among others', () => {
    const batch = [
      settled('a', { holdMs: 5_000 }),
      settled('a', { holdMs: 2_000, gone: true }),
      settled('a', { isProbe: true, succeeded: true }, 'probe'),
      settled('a', { tripped: true }),
    ];
    expect(circuitLessons(batch)).toEqual([
      {
        tenantId: 't',
        endpointId: 'a',
        succeeded: true,
        failures: 1,
        threshold: 5,
        openMs: 30_000,
        tripped: true,
        holdMs: 5_000,
        gone: true,
        probeToken: 'probe',
        probeSucceeded: true,
      },
    ]);
  });
});
