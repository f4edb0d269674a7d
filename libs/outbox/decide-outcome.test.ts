import { describe, expect, it } from 'vitest';
import { decideOutcome } from './decide-outcome.js';
import type { AttemptRecord } from './types.js';

const attempt = (outcome: AttemptRecord['outcome']): AttemptRecord => ({
  outcome,
  statusCode: null,
  errorKind: null,
  error: null,
  responseBody: null,
  startedAtMs: 0,
  durationMs: 1,
});
const policy = {
  waits: { kind: 'schedule', delaysMs: [1_000, 2_000, 4_000] },
  jitter: 0.2,
  retryOn: 'any',
} as const;
const answered = (statusCode: number | null) => ({ ...attempt('failed'), statusCode });
const standing = (cycleAttemptNumber: number) => ({
  cycleAttemptNumber,
  expiresAtMs: 1e9,
  nowMs: 0,
  unsendable: false,
  retryAfterMs: null,
});

describe('an outcome', () => {
  it('is success for a success, at any number', () => {
    expect(decideOutcome(attempt('succeeded'), standing(99), policy, 0.5)).toEqual({ state: 'succeeded' });
  });

  it('waits by the schedule, and dies after one failure more than it has waits', () => {
    const outcomes = [1, 2, 3, 4].map((number) =>
      decideOutcome(attempt('failed'), standing(number), policy, 0.5),
    );
    expect(outcomes).toEqual([
      { state: 'failed', retryInMs: 1_000 },
      { state: 'failed', retryInMs: 2_000 },
      { state: 'failed', retryInMs: 4_000 },
      { state: 'dead', reason: 'exhausted' },
    ]);
  });

  it('spreads a wait over plus and minus the jitter and no further', () => {
    const waits = [0, 0.25, 0.999_999].map((random) =>
      decideOutcome(attempt('failed'), standing(1), policy, random),
    );
    expect(waits).toEqual([
      { state: 'failed', retryInMs: 800 },
      { state: 'failed', retryInMs: 900 },
      { state: 'failed', retryInMs: 1_200 },
    ]);
  });

  it('counts a lapsed lease as a failure like any other', () => {
    expect(decideOutcome(attempt('lease_expired'), standing(3), policy, 0.5)).toEqual({
      state: 'failed',
      retryInMs: 4_000,
    });
    expect(decideOutcome(attempt('lease_expired'), standing(4), policy, 0.5)).toEqual({
      state: 'dead',
      reason: 'exhausted',
    });
  });

  it('ends a debt whose time would run out before the next attempt', () => {
    const late = { ...standing(1), nowMs: 1e9 - 500 };
    expect(decideOutcome(attempt('failed'), late, policy, 0.5)).toEqual({ state: 'dead', reason: 'expired' });
  });

  it('[row 38] gives up at once on a request that can never be sent', () => {
    const outcome = decideOutcome(attempt('failed'), { ...standing(1), unsendable: true }, policy, 0.5);
    expect(outcome).toEqual({ state: 'dead', reason: 'unsendable' });
  });

  it.each([500, 503, 408, 425, 429, null])(
    '[row 34] of %s is a retry, whatever the policy retries',
    (status) => {
      for (const retryOn of ['any', 'transient'] as const)
        expect(decideOutcome(answered(status), standing(1), { ...policy, retryOn }, 0.5).state).toBe(
          'failed',
        );
    },
  );

  it.each([400, 401, 404, 409, 301])(
    '[row 34] of %i is final after one attempt where only what may pass is retried',
    (status) => {
      const transient = { ...policy, retryOn: 'transient' } as const;
      expect(decideOutcome(answered(status), standing(1), transient, 0.5)).toEqual({
        state: 'dead',
        reason: 'rejected',
      });
      expect(decideOutcome(answered(status), standing(1), policy, 0.5).state).toBe('failed');
    },
  );

  it('of 410 is the end under any policy', () => {
    for (const retryOn of ['any', 'transient'] as const)
      expect(decideOutcome(answered(410), standing(1), { ...policy, retryOn }, 0.5)).toEqual({
        state: 'dead',
        reason: 'gone',
      });
  });

  it('[row 41] waits as long as the receiver asks, or as the policy says if that is longer', () => {
    const asked = (retryAfterMs: number) =>
      decideOutcome(answered(429), { ...standing(1), retryAfterMs }, policy, 0.5);
    expect(asked(120_000)).toEqual({ state: 'failed', retryInMs: 120_000 });
    expect(asked(10)).toEqual({ state: 'failed', retryInMs: 1_000 });
  });
});
