import { describe, expect, it } from 'vitest';
import { ReadyEndpoints } from './ready-endpoints.js';

const room = (slots: number, endpointLimit = 64, busy: Record<string, number> = {}) => ({
  slots,
  endpointLimit,
  inFlight: (endpointId: string) => busy[endpointId] ?? 0,
  tenantLimit: 96,
  inFlightOfTenant: (tenantId: string) => busy[tenantId] ?? 0,
});
const see = (ready: ReadyEndpoints, tenantId: string, ...endpointIds: string[]) => {
  for (const endpointId of endpointIds) ready.see({ tenantId, endpointId });
};
const sum = (quotas: readonly { tenantId: string; quota: number }[], tenantId: string) =>
  quotas.filter((quota) => quota.tenantId === tenantId).reduce((total, { quota }) => total + quota, 0);

describe('the ready endpoints', () => {
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
    const quotas = ready.choose(room(100, 10, { a0: 7, a1: 10 }));
    expect(quotas).toEqual([{ tenantId: 'a', endpointId: 'a0', quota: 3, watermarkMs: 0 }]);
  });

  it('leave room for others beside a tenant whose receivers hang', () => {
    const ready = new ReadyEndpoints();
    see(ready, 'a', 'a0', 'a1');
    expect(sum(ready.choose(room(40, 64, { a: 90 })), 'a')).toBe(6);
    expect(ready.choose(room(40, 64, { a: 96 }))).toEqual([]);
    see(ready, 'b', 'b0');
    expect(sum(ready.choose(room(32, 64, { a: 96 })), 'b')).toBeGreaterThan(0);
  });

  it('let every tenant and every endpoint have its turn when there is one slot a time', () => {
    const ready = new ReadyEndpoints();
    see(ready, 'a', 'a0', 'a1', 'a2');
    see(ready, 'b', 'b0');
    const turns = Array.from({ length: 6 }, () => ready.choose(room(1))[0]!.endpointId);
    expect(turns).toEqual(['a0', 'b0', 'a1', 'b0', 'a2', 'b0']);
  });

  it('forget an endpoint whose claim fell short', () => {
    const ready = new ReadyEndpoints();
    see(ready, 'a', 'a0');
    const [quota] = ready.choose(room(8));
    ready.settle(quota!, { count: 3, lastDueAtMs: 5_000 }, 1_000);
    expect(ready.size).toBe(0);
    expect(ready.choose(room(8))).toEqual([]);
  });

  it('keep an endpoint that was seen again while its claim was under way', () => {
    const ready = new ReadyEndpoints();
    see(ready, 'a', 'a0');
    const [quota] = ready.choose(room(8));
    see(ready, 'a', 'a0');
    ready.settle(quota!, { count: 0, lastDueAtMs: 0 }, 1_000);
    expect(ready.choose(room(8))).toHaveLength(1);
  });

  it('raise the watermark behind a full claim, with slack, and drop it when the endpoint is seen anew', () => {
    const ready = new ReadyEndpoints();
    see(ready, 'a', 'a0');
    const [quota] = ready.choose(room(2));
    ready.settle(quota!, { count: 2, lastDueAtMs: 5_000 }, 1_000);
    expect(ready.choose(room(2))[0]!.watermarkMs).toBe(4_000);
    see(ready, 'a', 'a0');
    expect(ready.choose(room(2))[0]!.watermarkMs).toBe(0);
  });
});
