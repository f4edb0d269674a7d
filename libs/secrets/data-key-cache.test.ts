import { createSecretKey } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { DataKeyCache } from './data-key-cache.js';

const KEY = createSecretKey(Buffer.alloc(32, 1));

describe('the cache of data keys', () => {
  it('reads each version of each tenant once, whoever asks at the same time', async () => {
    const reads: string[] = [];
    const cache = new DataKeyCache(async (tenantId, version) => {
      reads.push(`${tenantId}/${version}`);
      return KEY;
    });
    await Promise.all([cache.of('a', 1), cache.of('a', 1), cache.of('b', 1), cache.of('a', 2)]);
    await cache.of('a', 1);
    expect(reads).toEqual(['a/1', 'b/1', 'a/2']);
  });

  it('keeps no failure', async () => {
    let fails = true;
    const cache = new DataKeyCache(async () => {
      if (fails) throw new Error('away');
      return KEY;
    });
    await expect(cache.of('a', 1)).rejects.toThrow('away');
    fails = false;
    await expect(cache.of('a', 1)).resolves.toBe(KEY);
  });

  it('keeps ten thousand, and lets the oldest go', async () => {
    let reads = 0;
    const cache = new DataKeyCache(async () => {
      reads += 1;
      return KEY;
    });
    for (let tenant = 0; tenant <= 10_000; tenant += 1) await cache.of(String(tenant), 1);
    await cache.of('1', 1);
    expect(reads).toBe(10_001);
    await cache.of('0', 1);
    expect(reads).toBe(10_002);
  });
});
