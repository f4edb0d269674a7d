import { describe, expect, it } from 'vitest';
import type { ClaimedEndpoint, ClaimQuota } from '#outbox';
import { ReadyEndpoints, type Room } from './ready-endpoints.js';

const NOW = 1_000_000;
const AT = { nowMs: NOW, slackMs: 1_000 };

function room(
  fast: number,
  options: { slow?: number; slowEndpoints?: string[]; free?: Record<string, number> } = {},
): Room {
  const { slow = 0, slowEndpoints = [], free = {} } = options;
  return {
    fast,
    slow,
    laneOf: (endpointId) => (slowEndpoints.includes(endpointId) ? 'slow' : 'fast'),
    freeOfEndpoint: (endpointId) => free[endpointId] ?? 64,
    freeOfTenant: (tenantId, lane) => free[`${tenantId} ${lane}`] ?? 96,
  };
}

function see(ready: ReadyEndpoints, tenantId: string, ...endpointIds: string[]): void {
  for (const endpointId of endpointIds) ready.see({ tenantId, endpointId }, null, NOW);
}

/** How a claim found the endpoint of a quota. */
function found(quota: ClaimQuota, changes: Partial<ClaimedEndpoint> = {}): ClaimedEndpoint {
  const { tenantId, endpointId } = quota;
  const standing = { standing: 'ready', allowed: quota.quota, waitMs: null } as const;
  return { tenantId, endpointId, ...standing, ...changes } as ClaimedEndpoint;
}

const sum = (quotas: readonly { tenantId: string; quota: number }[], tenantId: string) =>
  quotas.filter((quota) => quota.tenantId === tenantId).reduce((total, { quota }) => total + quota, 0);

describe('the ready endpoints', () => {
  it('forget one that is gone with its tenant, and nobody asks for it again', () => {
    const ready = new ReadyEndpoints();
    see(ready, 'a', 'a0', 'a1');
    ready.forget({ tenantId: 'a', endpointId: 'a0' });
    ready.forget({ tenantId: 'b', endpointId: 'b0' });
    expect(ready.size).toBe(1);
    expect(ready.choose(room(10)).map(({ endpointId }) => endpointId)).toEqual(['a1']);
  });

  it('share the slots evenly over tenants, however many endpoints each has', () => {
    const ready = new ReadyEndpoints();
    see(ready, 'a', ...Array.from({ length: 50 }, (_, index) => `a${index}`));
    see(ready, 'b', 'b0');
    const quotas = ready.choose(room(64));
    expect(sum(quotas, 'a')).toBe(32);
    expect(sum(quotas, 'b')).toBe(32);
  });

  it('never give out more than the slots, nor more than an endpoint has room for', () => {
    const ready = new ReadyEndpoints();
    see(ready, 'a', 'a0', 'a1');
    const quotas = ready.choose(room(90, { free: { a0: 3, a1: 0 } }));
    expect(quotas).toEqual([{ tenantId: 'a', endpointId: 'a0', quota: 3, watermarkMs: 0 }]);
  });

  it('leave room for others beside a tenant that holds its share', () => {
    const ready = new ReadyEndpoints();
    see(ready, 'a', 'a0', 'a1');
    expect(sum(ready.choose(room(40, { free: { 'a fast': 6 } })), 'a')).toBe(6);
    expect(ready.choose(room(40, { free: { 'a fast': 0 } }))).toEqual([]);
    see(ready, 'b', 'b0');
    expect(sum(ready.choose(room(32, { free: { 'a fast': 0 } })), 'b')).toBeGreaterThan(0);
  });

  it('[row 70] choose a slow endpoint for slots of the slow lane alone, and others for the fast one alone', () => {
    const ready = new ReadyEndpoints();
    see(ready, 'a', 'slow');
    see(ready, 'b', 'b0');
    const slowEndpoints = ['slow'];
    expect(ready.choose(room(64, { slow: 0, slowEndpoints })).map(({ endpointId }) => endpointId)).toEqual([
      'b0',
    ]);
    expect(ready.choose(room(0, { slow: 8, slowEndpoints })).map(({ endpointId }) => endpointId)).toEqual([
      'slow',
    ]);
    const both = ready.choose(room(64, { slow: 8, slowEndpoints }));
    expect([sum(both, 'a'), sum(both, 'b')]).toEqual([8, 32]);
  });

  it('let every tenant and every endpoint have its turn when there is one slot a time', () => {
    const ready = new ReadyEndpoints();
    see(ready, 'a', 'a0', 'a1', 'a2');
    see(ready, 'b', 'b0');
    const turns = Array.from({ length: 6 }, () => ready.choose(room(1))[0]!.endpointId);
    expect(turns).toEqual(['a0', 'b0', 'a1', 'b0', 'a2', 'b0']);
  });

  it('look past any number of endpoints that have no room', () => {
    const ready = new ReadyEndpoints();
    const full = Array.from({ length: 1_000 }, (_, index) => `full${index}`);
    see(ready, 'a', ...full, 'free');
    const free = Object.fromEntries(full.map((endpointId) => [endpointId, 0]));
    const rounds = Array.from({ length: 8 }, () => ready.choose(room(4, { free })));
    expect(rounds.flat().map(({ endpointId }) => endpointId)).toContain('free');
  });

  it('take many at once from an endpoint whose last claim was full', () => {
    const ready = new ReadyEndpoints();
    see(ready, 'a', ...Array.from({ length: 32 }, (_, index) => `a${index}`));
    const fresh = ready.choose(room(64));
    expect(fresh.map(({ quota }) => quota)).toEqual(Array.from({ length: 32 }, () => 2));
    for (const quota of fresh) ready.settle(found(quota), { count: quota.quota, lastDueAtMs: 1 }, AT);
    expect(ready.choose(room(64)).map(({ quota }) => quota)).toEqual([16, 16, 16, 16]);
  });

  it('forget an endpoint whose claim fell short, and one that is held', () => {
    const ready = new ReadyEndpoints();
    see(ready, 'a', 'a0', 'a1');
    const [short, held] = ready.choose(room(8));
    ready.settle(found(short!), { count: 3, lastDueAtMs: 5_000 }, AT);
    ready.settle(found(held!, { standing: 'held', allowed: 0 }), { count: 0, lastDueAtMs: 0 }, AT);
    expect(ready.size).toBe(0);
    expect(ready.choose(room(8))).toEqual([]);
  });

  it('keep an endpoint that was seen again while its claim was under way', () => {
    const ready = new ReadyEndpoints();
    see(ready, 'a', 'a0');
    const [quota] = ready.choose(room(8));
    see(ready, 'a', 'a0');
    ready.settle(found(quota!), { count: 0, lastDueAtMs: 0 }, AT);
    expect(ready.choose(room(8))).toHaveLength(1);
  });

  it('raise the watermark behind a full claim, with slack, and lower it to older work that is found', () => {
    const ready = new ReadyEndpoints();
    see(ready, 'a', 'a0');
    const [quota] = ready.choose(room(2));
    ready.settle(found(quota!), { count: 2, lastDueAtMs: 5_000 }, AT);
    see(ready, 'a', 'a0');
    expect(ready.choose(room(2))[0]!.watermarkMs).toBe(4_000);
    ready.see({ tenantId: 'a', endpointId: 'a0' }, 1_234, NOW);
    expect(ready.choose(room(2))[0]!.watermarkMs).toBe(1_234);
  });

  it('let an endpoint wait for its circuit, its rate or its Retry-After, and ask again at its time', () => {
    const ready = new ReadyEndpoints();
    see(ready, 'a', 'a0');
    const [quota] = ready.choose(room(2));
    ready.settle(
      found(quota!, { standing: 'open', allowed: 0, waitMs: 5_000 }),
      { count: 0, lastDueAtMs: 0 },
      AT,
    );
    expect([ready.size, ready.nextAtMs]).toEqual([0, NOW + 5_000]);
    // Hints name it a thousand times a second; it is asked for again once.
    ready.see({ tenantId: 'a', endpointId: 'a0' }, null, NOW + 999);
    expect(ready.size).toBe(0);
    ready.see({ tenantId: 'a', endpointId: 'a0' }, null, NOW + 1_000);
    expect(ready.size).toBe(1);
    const [again] = ready.choose(room(2));
    ready.settle(
      found(again!, { standing: 'open', allowed: 0, waitMs: 4_000 }),
      { count: 0, lastDueAtMs: 0 },
      AT,
    );
    ready.wake(NOW + 4_999);
    expect(ready.choose(room(2))).toEqual([again]);
  });

  it('ask for an endpoint at once whose circuit changed', () => {
    const ready = new ReadyEndpoints();
    see(ready, 'a', 'a0');
    const [quota] = ready.choose(room(2));
    ready.settle(
      found(quota!, { standing: 'open', allowed: 0, waitMs: 60_000 }),
      { count: 0, lastDueAtMs: 0 },
      AT,
    );
    ready.askAnew('a0');
    ready.askAnew('unknown');
    expect(ready.choose(room(2))).toHaveLength(1);
    // Its old time comes all the same, and finds it there already.
    ready.wake(NOW + 100_000);
    expect(ready.size).toBe(1);
  });

  it('leave alone what asked for it, known or not, until its time is over or a moment later somebody asks', () => {
    const ready = new ReadyEndpoints();
    see(ready, 'a', 'a0', 'a1');
    ready.hold({ tenantId: 'a', endpointId: 'a0' }, 5_000, NOW);
    ready.hold({ tenantId: 'b', endpointId: 'b0' }, 3_000, NOW);
    see(ready, 'a', 'a0');
    see(ready, 'b', 'b0');
    expect(ready.choose(room(64)).map(({ endpointId }) => endpointId)).toEqual(['a1']);
    expect(ready.nextAtMs).toBe(NOW + 3_000);
    ready.see({ tenantId: 'a', endpointId: 'a0' }, null, NOW + 1_000);
    ready.wake(NOW + 3_000);
    expect(
      ready
        .choose(room(64))
        .map(({ endpointId }) => endpointId)
        .toSorted(),
    ).toEqual(['a0', 'a1', 'b0']);
    expect(ready.size).toBe(3);
  });

  it('[row 41] let a hold outlast a wait for a token, and keep one entry for a wait that is asked for all the time', () => {
    const ready = new ReadyEndpoints();
    see(ready, 'a', 'a0');
    const [quota] = ready.choose(room(2));
    const limited = found(quota!, { standing: 'limited', allowed: 0, waitMs: 50 });
    ready.settle(limited, { count: 0, lastDueAtMs: 0 }, AT);
    ready.hold({ tenantId: 'a', endpointId: 'a0' }, 60_000, NOW);
    ready.wake(NOW + 59_999);
    expect([ready.size, ready.nextAtMs]).toEqual([0, NOW + 60_000]);
    ready.wake(NOW + 60_000);
    expect(ready.size).toBe(1);
    for (let second = 1; second < 10_000; second += 1) {
      const nowMs = NOW + 60_000 + second * 1_000;
      const [again] = ready.choose(room(2));
      const waiting = found(again!, { standing: 'waiting', allowed: 0, waitMs: 3_600_000 });
      ready.settle(waiting, { count: 0, lastDueAtMs: 0 }, { nowMs, slackMs: 1_000 });
      ready.see({ tenantId: 'a', endpointId: 'a0' }, null, nowMs + 1_000);
    }
    expect(ready.waitEntries).toBeLessThan(2_000);
  });
});
