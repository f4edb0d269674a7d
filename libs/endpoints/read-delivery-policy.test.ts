import { describe, expect, it } from 'vitest';
import { AppError } from '#runtime';
import { REFUSED_POLICIES } from '../../test/support/refused-policies.js';
import { readDeliveryPolicy } from './read-delivery-policy.js';

const LIMITS = { connectTimeoutMs: 5_000, attemptTimeoutMs: 15_000, leaseMs: 60_000 };

function refusalOf(body: object, limits = LIMITS): AppError {
  try {
    readDeliveryPolicy(body, limits);
  } catch (error) {
    if (error instanceof AppError) return error;
    throw error;
  }
  throw new Error(`was taken: ${JSON.stringify(body)}`);
}

describe('a delivery policy', () => {
  it.each(REFUSED_POLICIES)('with $what is refused, naming $field', ({ body, field, code }) => {
    const refusal = refusalOf(body);
    expect({ code: refusal.code, details: refusal.details }).toEqual({
      code: code ?? 'validation_failed',
      details: [{ field, reason: code === undefined ? 'invalid' : 'unknown' }],
    });
  });

  it.each([Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, undefined])(
    'refuses %s for any of its numbers',
    (value) => {
      const backoff = { initial_seconds: 1, cap_seconds: 1, max_attempts: 1 };
      const bodies = [
        { retry: { schedule_seconds: [value] } },
        ...Object.keys(backoff).map((name) => ({ retry: { ...backoff, [name]: value } })),
      ];
      const optional = [
        { retry: { schedule_seconds: [1], jitter: value } },
        { max_age_seconds: value },
        { timeout: { connect_ms: value } },
        { timeout: { total_ms: value } },
        { rate_per_second: value },
        { concurrency: value },
        { circuit: { failures: value } },
        { circuit: { failure_ratio: value } },
        { circuit: { open_seconds: value } },
      ];
      for (const body of value === undefined ? bodies : [...bodies, ...optional])
        expect(refusalOf(body).code).toBe('validation_failed');
    },
  );

  it('leaves out what the body leaves out, and turns null into the default', () => {
    expect(readDeliveryPolicy({}, LIMITS)).toEqual({});
    const nothing = { retry: null, max_age_seconds: null, timeout: null, rate_per_second: null };
    expect(readDeliveryPolicy({ ...nothing, concurrency: null, circuit: null }, LIMITS)).toEqual({
      retry: null,
      maxAgeMs: null,
      connectTimeoutMs: null,
      attemptTimeoutMs: null,
      ratePerSecond: null,
      concurrency: null,
      circuitFailures: null,
      circuitFailureRatio: null,
      circuitOpenMs: null,
    });
    expect(readDeliveryPolicy({ timeout: {}, circuit: {}, retry: { preset: 'default' } }, LIMITS)).toEqual({
      retry: null,
      connectTimeoutMs: null,
      attemptTimeoutMs: null,
      circuitFailures: null,
      circuitFailureRatio: null,
      circuitOpenMs: null,
    });
  });

  it('takes the least and the most of each number', () => {
    const least = {
      max_age_seconds: 1,
      timeout: { connect_ms: 50, total_ms: 100 },
      rate_per_second: 0.001,
      concurrency: 1,
      circuit: { failures: 1, failure_ratio: 0.01, open_seconds: 0.1 },
    };
    expect(readDeliveryPolicy(least, LIMITS)).toEqual({
      maxAgeMs: 1_000,
      connectTimeoutMs: 50,
      attemptTimeoutMs: 100,
      ratePerSecond: 0.001,
      concurrency: 1,
      circuitFailures: 1,
      circuitFailureRatio: 0.01,
      circuitOpenMs: 100,
    });
    const most = {
      max_age_seconds: 7_776_000,
      timeout: { connect_ms: 60_000, total_ms: 300_000 },
      rate_per_second: 10_000,
      concurrency: 2_048,
      circuit: { failures: 1_000, failure_ratio: 1, open_seconds: 3_600 },
    };
    expect(readDeliveryPolicy(most, { ...LIMITS, leaseMs: 3_600_000 })).toEqual({
      maxAgeMs: 7_776_000_000,
      connectTimeoutMs: 60_000,
      attemptTimeoutMs: 300_000,
      ratePerSecond: 10_000,
      concurrency: 2_048,
      circuitFailures: 1_000,
      circuitFailureRatio: 1,
      circuitOpenMs: 3_600_000,
    });
  });

  it('lets an attempt last as long as its lease leaves time to record it', () => {
    const limits = { ...LIMITS, leaseMs: 20_000 };
    expect(readDeliveryPolicy({ timeout: { total_ms: 18_000 } }, limits)).toMatchObject({
      attemptTimeoutMs: 18_000,
    });
    expect(refusalOf({ timeout: { total_ms: 18_001 } }, limits).details).toEqual([
      { field: 'timeout.total_ms', reason: 'invalid' },
    ]);
  });

  it('has no circuit when it is off', () => {
    expect(readDeliveryPolicy({ circuit: 'off' }, LIMITS)).toEqual({
      circuitFailures: 0,
      circuitFailureRatio: null,
      circuitOpenMs: null,
    });
  });
});
