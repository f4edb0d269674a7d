import type { ClaimedDelivery } from '#outbox';
import { describe, expect, it } from 'vitest';
import { UnreadableSecretError, type OpenedSecret } from './open-secrets.js';
import { SigningKeys, UnusableSecretError } from './signing-keys.js';

const secretOf = (fill: number): string => `whsec_${Buffer.alloc(24, fill).toString('base64')}`;
const NEW: OpenedSecret = { text: secretOf(2), expiresAtMs: null };
const OLD: OpenedSecret = { text: secretOf(1), expiresAtMs: 10_000 };

function deliveryOf(secretsVersion: number): ClaimedDelivery {
  return { tenantId: 't', endpointId: 'e', endpoint: { secretsVersion } } as ClaimedDelivery;
}

/** Signing keys over a stored list, and how often it was read. */
function openKeys(stored: readonly OpenedSecret[]) {
  const state = { stored, reads: 0, error: null as Error | null };
  const keys = new SigningKeys(async () => {
    state.reads += 1;
    if (state.error !== null) throw state.error;
    return state.stored;
  });
  const of = async (secretsVersion: number, nowMs: number): Promise<number[]> =>
    (await keys.of(deliveryOf(secretsVersion), nowMs)).map((key) => key.export()[0]!);
  return { state, of };
}

describe('signing keys', () => {
  it('are read once for a version of the secrets, for as long as nothing ends', async () => {
    const { state, of } = openKeys([NEW]);
    expect(await Promise.all([of(1, 0), of(1, 0)])).toEqual([[2], [2]]);
    expect(await of(1, 1e9)).toEqual([2]);
    expect(state.reads).toBe(1);
  });

  it('are read anew for a newer version, and never again taken from an older one', async () => {
    const { state, of } = openKeys([OLD]);
    expect(await of(1, 0)).toEqual([1]);
    state.stored = [NEW];
    expect(await of(2, 1)).toEqual([2]);
    // Claimed before the change, signed after it.
    expect(await of(1, 2)).toEqual([2]);
    expect(state.reads).toBe(2);
  });

  it('end at the very moment of the clock that is given, without being read', async () => {
    const { of } = openKeys([NEW, OLD]);
    expect(await of(1, 9_999)).toEqual([2, 1]);
    expect(await of(1, 10_000)).toEqual([2]);
  });

  it('are read once a second while one of them is about to end', async () => {
    const { state, of } = openKeys([NEW, OLD]);
    for (const nowMs of [0, 500, 999]) expect(await of(1, nowMs)).toEqual([2, 1]);
    expect(state.reads).toBe(1);
    // Its end was brought forward by hand: no version tells of it.
    state.stored = [NEW];
    expect(await of(1, 1_000)).toEqual([2]);
    expect(await of(1, 9_000)).toEqual([2]);
    expect(state.reads).toBe(2);
  });

  it('are none when all have ended, or are no keys: nothing that a retry would mend', async () => {
    const { state, of } = openKeys([OLD]);
    await expect(of(1, 10_000)).rejects.toThrow(UnusableSecretError);
    state.stored = [{ text: 'whsec_!!', expiresAtMs: null }];
    await expect(of(2, 0)).rejects.toThrow(UnusableSecretError);
  });

  it('that do not open are asked for once a second, and any other failure at once', async () => {
    const { state, of } = openKeys([NEW]);
    state.error = new UnreadableSecretError('sec_1');
    for (const nowMs of [0, 10, 999]) await expect(of(1, nowMs)).rejects.toThrow(UnreadableSecretError);
    expect(state.reads).toBe(1);
    state.error = new Error('the database is away');
    await expect(of(1, 1_000)).rejects.toThrow('away');
    await expect(of(1, 1_001)).rejects.toThrow('away');
    expect(state.reads).toBe(3);
    state.error = null;
    expect(await of(1, 1_002)).toEqual([2]);
  });
});
