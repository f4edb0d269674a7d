import { expect, it } from 'vitest';
import { spreadEvenly } from './reap.js';

it('[H04] puts each of a batch in a part of its own, in an order of chance', () => {
  const spread = spreadEvenly(20, Math.random);
  const parts = spread.map((value) => Math.floor(value * 20));
  expect(parts.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 20 }, (_, part) => part));
  expect(spreadEvenly(20, Math.random)).not.toEqual(spread);
  expect(spreadEvenly(0, Math.random)).toEqual([]);
});
