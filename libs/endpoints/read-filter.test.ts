import { AppError } from '#runtime';
import { describe, expect, it } from 'vitest';

import { FILTER_LIMITS, readFilter } from './read-filter.js';

function refusal(value: unknown): AppError {
  try {
    readFilter(value);
  } catch (error) {
    if (error instanceof AppError) return error;
    throw error;
  }
  throw new Error(`accepted: ${JSON.stringify(value).slice(0, 200)}`);
}

const nested = (depth: number): object => (depth === 1 ? { a: 1 } : { $not: nested(depth - 1) });

describe('readFilter', () => {
  it('keeps a filter as it was given, and null for none', () => {
    const filter = { 'order.total': { $gte: 100 }, $or: [{ currency: 'EUR' }, { vip: true }] };
    expect(readFilter(filter)?.filter).toBe(filter);
    expect(readFilter(null)).toBeNull();
  });

  it('writes names and values only as quoted texts, whatever they hold', () => {
    const evil = '" ? (@ like_regex ".*") || $ == "';
    const { path } = readFilter({ [evil.replaceAll('.', '')]: { $eq: evil } })!;
    const texts = path.match(/"(?:[^"\\]|\\.)*"/g);
    expect(path.replaceAll(/"(?:[^"\\]|\\.)*"/g, 'T')).toBe('((exists($.T ? (@ == T))))');
    expect(texts).toHaveLength(2);
  });

  it.each<[string, unknown, string]>([
    ['no object', [], 'filter'],
    ['a text', 'a', 'filter'],
    ['nothing', undefined, 'filter'],
    ['no condition', {}, 'filter'],
    ['an empty group', { $or: [] }, 'filter.$or'],
    ['a group that is no list', { $and: { a: 1 } }, 'filter.$and'],
    ['an empty filter in a group', { $and: [{}] }, 'filter.$and[0]'],
    ['an unknown group', { $nor: [{ a: 1 }] }, 'filter.$nor'],
    ['an operator without a path', { $eq: 1 }, 'filter.$eq'],
    ['an unknown operator', { a: { $regex: '(a+)+$' } }, 'filter.a.$regex'],
    ['a path among operators', { a: { b: 1 } }, 'filter.a.b'],
    ['no operator', { a: {} }, 'filter.a'],
    ['a list for a value', { a: [1] }, 'filter.a'],
    ['a list to equal', { a: { $eq: [1] } }, 'filter.a.$eq'],
    ['an object to equal', { a: { $ne: {} } }, 'filter.a.$ne'],
    ['an order of booleans', { a: { $gt: true } }, 'filter.a.$gt'],
    ['an order of null', { a: { $lte: null } }, 'filter.a.$lte'],
    ['a start that is no text', { a: { $startsWith: 1 } }, 'filter.a.$startsWith'],
    ['no values', { a: { $in: [] } }, 'filter.a.$in'],
    ['too many values', { a: { $nin: Array.from({ length: 101 }, String) } }, 'filter.a.$nin'],
    [
      'too many values in two lists',
      { a: { $in: Array.from({ length: 60 }, String), $nin: Array.from({ length: 41 }, String) } },
      'filter.a.$nin',
    ],
    ['a value that is none', { a: { $in: [1, {}] } }, 'filter.a.$in[1]'],
    ['an existence that is no boolean', { a: { $exists: 1 } }, 'filter.a.$exists'],
    ['an empty path', { '': 1 }, 'filter.'],
    ['an empty segment', { 'a..b': 1 }, 'filter.a..b'],
    [
      'too many segments',
      { [Array.from({ length: 17 }, () => 'a').join('.')]: 1 },
      `filter.${'a.'.repeat(16)}a`,
    ],
    ['NUL in a path', { 'a\0': 1 }, 'filter.a\0'],
    ['NUL in a text', { a: 'x\0' }, 'filter.a'],
    ['half a character', { a: '\uD800' }, 'filter.a'],
    ['a long text', { a: 'x'.repeat(257) }, 'filter.a'],
    ['a number that JSON.parse has changed', { a: 2 ** 64 }, 'filter.a'],
    ['too deep', nested(FILTER_LIMITS.depthMax + 1), `filter${'.$not'.repeat(FILTER_LIMITS.depthMax)}`],
  ])('refuses %s, naming the place', (_, value, field) => {
    const error = refusal(value);
    expect(error.details[0]?.field).toBe(field);
    expect(['validation_failed', 'unknown_field']).toContain(error.code);
  });

  it('refuses one condition too many, wherever they stand', () => {
    const conditions = (count: number): object =>
      Object.fromEntries(Array.from({ length: count }, (_, index) => [`f${index}`, { $exists: true }]));
    expect(readFilter({ $and: [conditions(20), conditions(30)] })).not.toBeNull();
    expect(refusal({ $and: [conditions(20), conditions(31)] }).code).toBe('validation_failed');
  });

  it('takes the largest depth it names', () => {
    expect(readFilter(nested(FILTER_LIMITS.depthMax))).not.toBeNull();
  });
});
