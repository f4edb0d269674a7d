import { expect, it } from 'vitest';
import { Later } from './later.js';

it('gives back what was put off, soonest first, and nothing before its time', () => {
  const later = new Later<number>();
  const times = Array.from({ length: 500 }, (_, index) => (index * 7_919) % 1_000);
  for (const time of times) later.add(time, time);
  expect([later.size, later.nextAtMs]).toEqual([500, Math.min(...times)]);
  const taken: number[] = [];
  for (let item = later.take(500); item !== undefined; item = later.take(500)) taken.push(item);
  expect(taken).toEqual(times.filter((time) => time <= 500).toSorted((a, b) => a - b));
  expect(later.size).toBe(500 - taken.length);
  expect(new Later<number>().nextAtMs).toBe(Infinity);
});
