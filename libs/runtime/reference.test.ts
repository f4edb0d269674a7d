import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { DETAIL_REASONS } from './detail-reasons.js';
import { ERRORS } from './error-table.js';
import { LAUNCH_SETTINGS, SETTINGS } from './settings.js';

const read = (path: string): string => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');

const settings = (text: string): string[] =>
  [...new Set(text.match(/\b(?:WAYBILL_[A-Z_]+|DATABASE_URL)\b/g))].toSorted();

describe('the reference pages', () => {
  it('list exactly the error codes of the table, with their statuses and titles', () => {
    const listed = [...read('docs/reference/errors.md').matchAll(/^\| `(\w+)` +\| (\d+) +\| (.+?) *\|$/gm)];
    const expected = Object.entries(ERRORS).map(([code, { status, title }]) => [code, String(status), title]);
    expect(listed.map((line) => line.slice(1, 4))).toEqual(expected);
  });

  it('list exactly the reasons of details, and what each says', () => {
    const table = read('docs/reference/errors.md').split('## Reasons')[1]!;
    const listed = [...table.matchAll(/^\| (`.+?) +\| (.+?) +\|$/gm)].flatMap(([, words, text]) =>
      words!.split(', ').map((word) => [word.replaceAll('`', ''), text]),
    );
    const delivery = ['dlv_…', 'the delivery that is there already'];
    expect(listed).toEqual([...Object.entries(DETAIL_REASONS), delivery]);
  });

  it('explain every setting that is read, and no other', () => {
    const [explained, launch] = read('docs/reference/configuration.md').split('## `npm start`');
    expect(settings(explained!)).toEqual([...SETTINGS].toSorted());
    expect(settings(read('libs/runtime/config.ts'))).toEqual([...SETTINGS].toSorted());
    const rows = [...launch!.matchAll(/^\| `(\w+)`/gm)].map((row) => row[1]!);
    expect(rows.toSorted()).toEqual([...LAUNCH_SETTINGS].toSorted());
  });
});
