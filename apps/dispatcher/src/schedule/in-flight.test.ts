import { describe, expect, it } from 'vitest';
import type { ClaimedDelivery } from '#outbox';
import { InFlight, SLOW_MS } from './in-flight.js';

const SETTINGS = { concurrency: 8, slowConcurrency: 4, endpointConcurrency: 6, tenantConcurrency: 5 };

const delivery = (tenantId: string, endpointId: string, endpoint: object = {}) =>
  ({
    tenantId,
    endpointId,
    endpoint: { concurrency: null, recoveringCap: null, ...endpoint },
  }) as ClaimedDelivery;

describe('the slots', () => {
  it('are given to lanes, and free again at the end', () => {
    const inFlight = new InFlight(SETTINGS);
    const slot = inFlight.start(delivery('a', 'a0'), 0);
    expect([inFlight.count, inFlight.free.fast, inFlight.freeOfTenant('a', 'fast', 7)]).toEqual([1, 7, 4]);
    expect(inFlight.freeOfEndpoint('a0', 0)).toBe(5);
    inFlight.end(slot, 10);
    expect([inFlight.count, inFlight.free.fast, inFlight.freeOfEndpoint('a0', 0)]).toEqual([0, 8, 6]);
  });

  it('[row 70] [H05] of attempts that hang are free for others after a second, as far as the slow lane goes', () => {
    const inFlight = new InFlight(SETTINGS);
    const hanging = Array.from({ length: 6 }, () => inFlight.start(delivery('a', 'a0'), 0));
    inFlight.age(SLOW_MS);
    // A quarter of the slow lane is kept for what becomes slow.
    expect(inFlight.free).toEqual({ fast: 2, slow: 3 });
    inFlight.age(SLOW_MS + 1);
    expect([inFlight.free, inFlight.slowCount]).toEqual([{ fast: 6, slow: 0 }, 4]);
    expect(inFlight.laneOf('a0')).toBe('slow');
    // A quarter of the lane is the most a tenant is given anew.
    expect(inFlight.freeOfTenant('a', 'slow', 4)).toBeLessThanOrEqual(0);
    for (const slot of hanging) inFlight.end(slot, 15_000);
    expect(inFlight.free).toEqual({ fast: 8, slow: 3 });
    expect(inFlight.laneOf('a0')).toBe('slow');
    const quick = inFlight.start(delivery('a', 'a0'), 20_000);
    expect(inFlight.free).toEqual({ fast: 8, slow: 2 });
    inFlight.end(quick, 20_010);
    expect(inFlight.laneOf('a0')).toBe('fast');
  });

  it('[row 70] of endpoints that turn out to be slow stay in the fast lane while the other is full, and are all they get of it', () => {
    const inFlight = new InFlight(SETTINGS);
    const first = Array.from({ length: 4 }, () => inFlight.start(delivery('a', 'a0'), 0));
    inFlight.age(SLOW_MS + 1);
    inFlight.start(delivery('b', 'b0'), 2_000);
    inFlight.start(delivery('c', 'c0'), 2_000);
    inFlight.age(2_000 + SLOW_MS + 1);
    expect([inFlight.free.fast, inFlight.slowCount]).toEqual([6, 4]);
    expect([inFlight.laneOf('b0'), inFlight.laneOf('c0')]).toEqual(['slow', 'slow']);
    inFlight.end(first[0]!, 4_000);
    inFlight.age(4_000);
    expect([inFlight.free.fast, inFlight.slowCount]).toEqual([7, 4]);
  });

  it('[row 70] keep a rest of the fast lane for tenants that hold nothing of it, however many are busy', () => {
    const inFlight = new InFlight({ ...SETTINGS, concurrency: 256, tenantConcurrency: 192 });
    let free = 256;
    for (let tenant = 0; tenant < 20; tenant += 1) {
      const taken = Math.max(0, inFlight.freeOfTenant(`busy${tenant}`, 'fast', free));
      for (let count = 0; count < taken; count += 1) inFlight.start(delivery(`busy${tenant}`, 'e'), 0);
      free = inFlight.free.fast;
    }
    expect(inFlight.freeOfTenant('busy0', 'fast', free)).toBeLessThanOrEqual(0);
    expect(inFlight.freeOfTenant('new', 'fast', free)).toBeGreaterThan(0);
    expect(free).toBeGreaterThan(0);
  });

  it('skip ended attempts when they look for slow ones', () => {
    const inFlight = new InFlight(SETTINGS);
    const quick = inFlight.start(delivery('a', 'a0'), 0);
    inFlight.start(delivery('a', 'a1'), 0);
    inFlight.end(quick, 5);
    inFlight.age(SLOW_MS + 1);
    expect([inFlight.laneOf('a0'), inFlight.laneOf('a1')]).toEqual(['fast', 'slow']);
    expect(inFlight.slowCount).toBe(1);
  });

  it('of an endpoint are as many as it asks for, shared by the living replicas, and one at least', () => {
    const inFlight = new InFlight(SETTINGS);
    inFlight.replicas = 2;
    expect(inFlight.freeOfEndpoint('a0', 0)).toBe(3);
    inFlight.start(delivery('a', 'a0', { concurrency: 4 }), 0);
    expect(inFlight.freeOfEndpoint('a0', 0)).toBe(1);
    inFlight.start(delivery('a', 'a1', { concurrency: 1 }), 0);
    expect(inFlight.freeOfEndpoint('a1', 0)).toBe(0);
    inFlight.start(delivery('a', 'a2', { concurrency: 100, recoveringCap: 2 }), 0);
    expect(inFlight.freeOfEndpoint('a2', 0)).toBe(1);
    // One that joins takes its share from what is under way.
    inFlight.replicas = 4;
    expect(inFlight.freeOfEndpoint('a0', 0)).toBe(0);
    inFlight.replicas = 1;
    expect(['a0', 'a1', 'a2'].map((id) => inFlight.freeOfEndpoint(id, 0))).toEqual([3, 0, 1]);
  });

  it('[row 43] of an endpoint that recovers double each second, though none of its attempts ends', () => {
    const inFlight = new InFlight({ ...SETTINGS, endpointConcurrency: 64 });
    inFlight.start(delivery('a', 'a0', { recoveringCap: 1 }), 0);
    const free = [0, 999, 1_000, 2_000, 3_000, 9_999, 10_000].map((nowMs) =>
      inFlight.freeOfEndpoint('a0', nowMs),
    );
    expect(free).toEqual([0, 0, 1, 3, 7, 63, 63]);
  });

  it('tell who holds all they may', () => {
    const inFlight = new InFlight(SETTINGS);
    for (let number = 0; number < 5; number += 1) inFlight.start(delivery('a', `a${number}`), 0);
    inFlight.start(delivery('b', 'b0', { concurrency: 1 }), 0);
    expect(inFlight.atCap(0)).toEqual({ tenants: ['a'], endpoints: ['b0'], slotsFull: false });
  });
});
