import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { KeyUse } from './key-use.js';

const TENANT = '0190a5c2-7e3a-7cde-8f01-000000000001';
const key = (keyId: string) => ({ tenantId: TENANT, keyId });

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
});
afterEach(() => {
  vi.useRealTimers();
});

describe('the use of keys', () => {
  it('is written once a minute a key, those of a second together', async () => {
    const written: string[][] = [];
    const use = new KeyUse(
      async (keys) => void written.push(keys.map(({ keyId }) => keyId)),
      () => undefined,
    );
    for (let time = 0; time < 100; time += 1) for (const id of ['a', 'b']) use.note(key(id));
    expect(written).toEqual([]);
    await vi.advanceTimersByTimeAsync(1_000);
    use.note(key('a'));
    use.note(key('c'));
    await vi.advanceTimersByTimeAsync(58_000);
    use.note(key('a'));
    await vi.advanceTimersByTimeAsync(1_500);
    use.note(key('a'));
    await use.settled();
    expect(written).toEqual([['a', 'b'], ['c'], ['a']]);
  });

  it('is no matter to anybody when it cannot be written', async () => {
    const errors: unknown[] = [];
    const use = new KeyUse(
      () => Promise.reject(new Error('away')),
      (error) => errors.push(error),
    );
    use.note(key('a'));
    await vi.advanceTimersByTimeAsync(1_000);
    use.note(key('b'));
    await use.settled();
    expect(errors).toHaveLength(2);
  });
});
