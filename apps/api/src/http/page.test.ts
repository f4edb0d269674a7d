import { describe, expect, it } from 'vitest';
import { AppError } from '#runtime';
import { formatCursor, readPage, toPage } from './page.js';

const ID = '0190a5c2-7e3a-7cde-8f01-23456789abcd';
const TIME = '2026-11-30T10:11:12.123456Z';

const listOf = (name: string, tenantId = '01890000-0000-7000-8000-00000000000a') => ({ name, tenantId });

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
      listOf('dead-letters'),
      [1, 2, 3],
      2,
      (row) => [TIME, `${ID.slice(0, -1)}${row}`],
      (row) => row * 10,
    );
    expect(page.data).toEqual([10, 20]);
    expect(readPage(listOf('dead-letters'), ['time', 'uuid'], { cursor: page.next_cursor })).toEqual({
      limit: 50,
      after: [TIME, `${ID.slice(0, -1)}2`],
    });
  });

  it('has no cursor on the last page, even when it is full', () => {
    expect(toPage(listOf('events'), [1, 2], 2, () => [ID], String).next_cursor).toBeNull();
    expect(toPage(listOf('events'), [], 2, () => [ID], String)).toEqual({ data: [], next_cursor: null });
  });

  it.each(['', '0', '101', '-1', '1.5', 'ten', ' 5', '1e1', ['5', '6'], null])(
    '[row 90] refuses the limit %j',
    (limit) => {
      expect(codeOf(() => readPage(listOf('events'), ['uuid'], { limit }))).toBe('invalid_limit');
    },
  );

  it.each(['1', '100', '007'])('[row 90] takes the limit %j', (limit) => {
    expect(readPage(listOf('events'), ['uuid'], { limit }).limit).toBe(Number(limit));
  });

  it.each([
    '',
    'garbage',
    '!!!!',
    formatCursor(listOf('events'), [ID]) + '=',
    formatCursor(listOf('events'), [ID]) + '\n',
    formatCursor(listOf('deliveries'), [ID]),
    formatCursor(listOf('events', '01890000-0000-7000-8000-00000000000b'), [ID]),
    formatCursor(listOf('events'), [ID]).slice(0, -1),
    formatCursor(listOf('events'), [ID]).slice(0, -12),
    formatCursor(listOf('events'), []),
    formatCursor(listOf('events'), [ID, ID]),
    formatCursor(listOf('events'), ["' or 1=1"]),
    formatCursor(listOf('events'), [ID.toUpperCase()]),
    Buffer.from('{"list":"events"}').toString('base64url'),
    Buffer.from('null').toString('base64url'),
    Buffer.from(`["events",{"a":1}]`).toString('base64url'),
    'A'.repeat(600),
    'A'.repeat(10_000),
    ['a', 'b'],
    null,
  ])('[row 90] refuses the cursor %j', (cursor) => {
    expect(codeOf(() => readPage(listOf('events'), ['uuid'], { cursor }))).toBe('invalid_cursor');
  });

  it('refuses a time in a cursor that the database could not read', () => {
    const cursor = formatCursor(listOf('dead-letters'), ['2026-13-40T10:11:12.123456Z', ID]);
    expect(codeOf(() => readPage(listOf('dead-letters'), ['time', 'uuid'], { cursor }))).toBe(
      'invalid_cursor',
    );
  });
});
