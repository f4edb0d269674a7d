import { describe, expect, it } from 'vitest';
import { expectationOf } from './if-match.js';

describe('If-Match', () => {
  it.each([
    [undefined, true],
    ['*', true],
    ['"3"', true],
    ['"2", "3"', true],
    ['"2"', false],
    ['3', false],
    ['W/"3"', false],
    ['', false],
    ['"33"', false],
  ])('%s against version 3: %s', (header, matches) => {
    expect(expectationOf(header)(3)).toBe(matches);
  });
});
