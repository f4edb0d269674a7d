import { expect, it } from 'vitest';
import { FailureRatios } from './failure-ratios.js';

/** Counts attempts one after the other; the places at which the ratio was reached. */
function reachedAt(outcomes: boolean[], ratio: number | null, stepMs = 1): number[] {
  const ratios = new FailureRatios();
  return outcomes.flatMap((succeeded, index) =>
    ratios.reached('a', succeeded, ratio, index * stepMs) ? [index + 1] : [],
  );
}

it('is reached by a failure, with twenty attempts at least, and counted anew afterwards', () => {
  const half = Array.from({ length: 44 }, (_, index) => index % 2 === 0);
  expect(reachedAt(half, 0.5)).toEqual([20, 40]);
  expect(reachedAt(half, 0.6)).toEqual([]);
  expect(reachedAt(half, null)).toEqual([]);
});

it('looks at a minute, not at what was before', () => {
  expect(
    reachedAt(
      Array.from({ length: 100 }, () => false),
      0.5,
      4_000,
    ),
  ).toEqual([]);
});
