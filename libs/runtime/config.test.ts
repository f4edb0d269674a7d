import { describe, expect, it } from 'vitest';
import { readConfig } from './config.js';

const DATABASE_URL = 'postgresql://app@127.0.0.1/waybill';

describe('the configuration', () => {
  it('has a default for everything but the database', () => {
    const config = readConfig({ DATABASE_URL });
    expect(config.retryDelaysMs).toHaveLength(9);
    expect(config.retryDelaysMs.reduce((sum, delay) => sum + delay, 0)).toBe(
      (75 * 3600 + 35 * 60 + 5) * 1000,
    );
    expect(config).toMatchObject({
      attemptTimeoutMs: 15_000,
      leaseMs: 60_000,
      pollMs: 1_000,
      maxAgeMs: 14 * 86_400_000,
    });
  });

  it('lists every fault at once', () => {
    const env = {
      WAYBILL_PORT: '99999',
      WAYBILL_ALLOW_HTTP: 'yes',
      WAYBILL_RETRY_SCHEDULE: '1,,x',
      WAYBILL_POLL_MS: '1.5',
      WAYBILL_LOG_LEVEL: 'loud',
    };
    expect(() => readConfig(env)).toThrow(
      /DATABASE_URL[\s\S]*WAYBILL_PORT[\s\S]*WAYBILL_ALLOW_HTTP[\s\S]*WAYBILL_POLL_MS[\s\S]*WAYBILL_RETRY_SCHEDULE[\s\S]*WAYBILL_LOG_LEVEL/,
    );
  });

  it('[H01] refuses a lease that is shorter than an attempt and its record, naming both settings', () => {
    const env = { DATABASE_URL, WAYBILL_LEASE_MS: '1000', WAYBILL_ATTEMPT_TIMEOUT_MS: '5000' };
    expect(() => readConfig(env)).toThrow(/WAYBILL_LEASE_MS \(1000\).*WAYBILL_ATTEMPT_TIMEOUT_MS \(5000\)/);
  });

  it('names an installation by 1 to 16 lower-case letters and digits, `live` by default', () => {
    expect(readConfig({ DATABASE_URL }).keyEnv).toBe('live');
    expect(readConfig({ DATABASE_URL, WAYBILL_ENV: 'test2' }).keyEnv).toBe('test2');
    for (const env of ['Test', 'a_b', 'x'.repeat(17), 'é'])
      expect(() => readConfig({ DATABASE_URL, WAYBILL_ENV: env })).toThrow(/WAYBILL_ENV must be/);
  });

  it('keeps of the operator’s keys only digests', () => {
    const keys = ['a'.repeat(32), 'b'.repeat(40)];
    const config = readConfig({ DATABASE_URL, WAYBILL_OPERATOR_KEY: keys.join(' , ') });
    expect(config.operatorKeyDigests.map(({ length }) => length)).toEqual([32, 32]);
    expect(JSON.stringify(config)).not.toContain(keys[0]);
    expect(readConfig({ DATABASE_URL }).operatorKeyDigests).toEqual([]);
    const wrong = { DATABASE_URL, WAYBILL_OPERATOR_KEY: `${keys[0]},short` };
    expect(() => readConfig(wrong)).toThrow(/WAYBILL_OPERATOR_KEY must be keys of 32 to 512/);
    expect(() => readConfig(wrong)).not.toThrow(/aaaa|short/);
  });
});
