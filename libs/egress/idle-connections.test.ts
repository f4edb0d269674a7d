import { afterEach, describe, expect, it, vi } from 'vitest';
import { Connection } from './connection.js';
import { IdleConnections } from './idle-connections.js';
import { parseEgressPolicy } from './parse-egress-policy.js';
import type { Target } from './parse-target.js';

const policy = parseEgressPolicy({ allow: [], deny: [], allowHttp: true });
const target: Target = {
  origin: 'http://rx.stub.test',
  requestStart: 'POST / HTTP/1.1\r\n',
  host: 'rx.stub.test',
  port: 80,
  tls: false,
  isLiteral: false,
};
const open = (poolKey: string): Connection =>
  new Connection(poolKey, target, { policy, lookup: async () => [] }, 1_000);
const pools: IdleConnections[] = [];
const openPools = (): IdleConnections => {
  const idle = new IdleConnections();
  pools.push(idle);
  return idle;
};

afterEach(() => {
  vi.restoreAllMocks();
  for (const idle of pools.splice(0)) idle.close();
});

describe('IdleConnections', () => {
  it('hands a connection only to the pool it came from, the last one back first', () => {
    const idle = openPools();
    const [first, second] = [open('a'), open('a')];
    idle.giveBack(first);
    idle.giveBack(second);
    expect(idle.take('b')).toBeUndefined();
    expect([idle.take('a'), idle.take('a'), idle.take('a')]).toEqual([second, first, undefined]);
  });

  it('closes what was given back before a moment, and keeps the rest', () => {
    const idle = openPools();
    const now = vi.spyOn(performance, 'now');
    const [old, young] = [open('a'), open('a')];
    const destroyed = vi.spyOn(old, 'destroy');
    now.mockReturnValue(1_000);
    idle.giveBack(old);
    now.mockReturnValue(2_000);
    idle.giveBack(young);
    idle.closeOlderThan(1_500);
    expect(destroyed).toHaveBeenCalledTimes(1);
    expect([idle.count, idle.take('a'), idle.take('a')]).toEqual([1, young, undefined]);
  });

  it('never hands out a closed connection, and forgets it with the next sweep', () => {
    const idle = openPools();
    const [first, second, third] = [open('a'), open('a'), open('b')];
    for (const connection of [first, second, third]) idle.giveBack(connection);
    second.destroy();
    third.destroy();
    expect([idle.take('a'), idle.take('a'), idle.count]).toEqual([first, undefined, 1]);
    idle.closeOlderThan(performance.now() - 4_000);
    expect([idle.take('b'), idle.count]).toEqual([undefined, 0]);
  });

  it('keeps a connection no longer than its receiver does, whatever came back after it', () => {
    const idle = openPools();
    const now = vi.spyOn(performance, 'now').mockReturnValue(10_000);
    const [long, short, other] = [open('a'), open('a'), open('b')];
    idle.giveBack(long);
    idle.giveBack(short, 1_000);
    idle.giveBack(other, 1_000);
    now.mockReturnValue(10_999);
    expect(idle.take('b')).toBe(other);
    idle.giveBack(other, 1_000);
    now.mockReturnValue(11_000);
    expect([idle.take('a'), short.isClosed, idle.count]).toEqual([long, true, 1]);
    now.mockReturnValue(11_999);
    idle.closeOlderThan(11_999 - 4_000);
    expect([idle.count, other.isClosed]).toEqual([0, true]);
  });

  it('keeps at most 2,048 connections in all', () => {
    const idle = openPools();
    for (let index = 0; index < 2_048; index += 1) idle.giveBack(open(`pool ${index}`));
    const extra = open('one more');
    const destroyed = vi.spyOn(extra, 'destroy');
    idle.giveBack(extra);
    expect(destroyed).toHaveBeenCalledTimes(1);
    expect(idle.count).toBe(2_048);
  });
});
