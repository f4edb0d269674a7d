import { describe, expect, it } from 'vitest';
import { AppError } from '#runtime';
import { formatCursor, readPage, toPage } from './page.js';

const ID = '0190a5c2-7e3a-7cde-8f01-23456789abcd';
const TIME = '2026-11-30T10:11:12.123456Z';

function codeOf(run: () => unknown): string {
  try {
    run();
    return 'ok';
  } catch (error) {
    return error instanceof AppError ? error.code : String(error);
  }
}

describe('pages', () => {
  it('gives the key of the last row shown back to the list that made it', () => {
    const page = toPage(
      'dead-letters',
      [1, 2, 3],
      2,
      (row) => [TIME, `${ID.slice(0, -1)}${row}`],
      (row) => row * 10,
    );
    expect(page.data).toEqual([10, 20]);
    expect(readPage('dead-letters', ['time', 'uuid'], { cursor: page.next_cursor })).toEqual({
      limit: 50,
      after: [TIME, `${ID.slice(0, -1)}2`],
    });
  });

  it('has no cursor on the last page, even when it is full', () => {
    expect(toPage('events', [1, 2], 2, () => [ID], String).next_cursor).toBeNull();
    expect(toPage('events', [], 2, () => [ID], String)).toEqual({ data: [], next_cursor: null });
  });

  it.each(['', '0', '101', '-1', '1.5', 'ten', ' 5', '1e1', ['5', '6'], null])(
    '[row 90] refuses the limit %j',
    (limit) => {
      expect(codeOf(() => readPage('events', ['uuid'], { limit }))).toBe('invalid_limit');
    },
  );

  it.each(['1', '100', '007'])('[row 90] takes the limit %j', (limit) => {
    expect(readPage('events', ['uuid'], { limit }).limit).toBe(Number(limit));
  });

  it.each([
    '',
    'garbage',
    '!!!!',
    formatCursor('events', [ID]) + '=',
    formatCursor('events', [ID]) + '\n',
    formatCursor('deliveries', [ID]),
    formatCursor('events', []),
    formatCursor('events', [ID, ID]),
    formatCursor('events', ["' or 1=1"]),
    formatCursor('events', [ID.toUpperCase()]),
    Buffer.from('{"list":"events"}').toString('base64url'),
    Buffer.from('null').toString('base64url'),
    Buffer.from(`["events",{"a":1}]`).toString('base64url'),
    'A'.repeat(600),
    ['a', 'b'],
    null,
  ])('[row 90] refuses the cursor %j', (cursor) => {
    expect(codeOf(() => readPage('events', ['uuid'], { cursor }))).toBe('invalid_cursor');
  });

  it('refuses a time in a cursor that the database could not read', () => {
    const cursor = formatCursor('dead-letters', ['2026-13-40T10:11:12.123456Z', ID]);
    expect(codeOf(() => readPage('dead-letters', ['time', 'uuid'], { cursor }))).toBe('invalid_cursor');
  });
});
