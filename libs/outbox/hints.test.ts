import { describe, expect, it } from 'vitest';
import { newId, type Queryable, type Statement } from '#runtime';
import { createHints, formatHint, parseHint } from './hints.js';

const endpoint = () => ({ tenantId: newId(), endpointId: newId() });

describe('hints', () => {
  it('name their endpoints and come back the same', () => {
    const endpoints = [endpoint(), endpoint()];
    expect(parseHint(formatHint(endpoints))).toEqual(endpoints);
  });

  it('[H17] fall back to the empty text before PostgreSQL would refuse them at 8,000 bytes', () => {
    const hundred = Array.from({ length: 106 }, endpoint);
    expect(Buffer.byteLength(formatHint(hundred))).toBeLessThanOrEqual(7_900);
    expect(formatHint(hundred)).not.toBe('');
    expect(formatHint([...hundred, endpoint()])).toBe('');
  });

  it('read nothing into text that is none', () => {
    expect(parseHint('')).toEqual([]);
    expect(parseHint("x:y,'; drop table")).toEqual([]);
  });

  it('share one notification while another is under way, and never lose the last', async () => {
    const sent: string[] = [];
    const open: (() => void)[] = [];
    // Records what would be sent: what PostgreSQL does with it is tried in the acceptance tests.
    const db = {
      query: (statement: Statement) =>
        new Promise((resolve) => {
          sent.push(String(statement.values![1]));
          open.push(() => resolve({ rows: [] }));
        }),
    } as unknown as Queryable;
    const hints = createHints(db, () => expect.fail('no hint fails here'));
    const [first, second, third] = [endpoint(), endpoint(), endpoint()];
    hints.notify([first]);
    hints.notify([second]);
    hints.notify([third, second]);
    expect(sent).toHaveLength(1);
    open[0]!();
    await expect.poll(() => sent.length).toBe(2);
    open[1]!();
    await hints.settled();
    expect(parseHint(sent[1]!)).toEqual([second, third]);
  });
});
