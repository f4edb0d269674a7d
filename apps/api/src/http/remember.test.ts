import { describe, expect, it } from 'vitest';
import { remember } from './remember.js';

describe('remember', () => {
  it('does the work once for calls at the same time and soon after', async () => {
    let runs = 0;
    const ask = remember(60_000, () => Promise.resolve((runs += 1)));
    expect(await Promise.all([ask(), ask()])).toEqual([1, 1]);
    expect(await ask()).toBe(1);
  });

  it('does it again when the result is too old', async () => {
    let runs = 0;
    const ask = remember(0, () => Promise.resolve((runs += 1)));
    expect([await ask(), await ask()]).toEqual([1, 2]);
  });

  it('does not remember a failure', async () => {
    let runs = 0;
    const ask = remember(60_000, () =>
      (runs += 1) === 1 ? Promise.reject(new Error('down')) : Promise.resolve('up'),
    );
    await expect(ask()).rejects.toThrow('down');
    expect(await ask()).toBe('up');
  });
});
