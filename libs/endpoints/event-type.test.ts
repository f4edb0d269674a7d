import { describe, expect, it } from 'vitest';
import { isEventType, readEventTypes } from './event-type.js';

describe('event types', () => {
  it.each(['a', 'order.created', 'A-b_9.c', 'x'.repeat(256), 'waybills.a', 'waybill'])('takes %s', (text) => {
    expect(isEventType(text)).toBe(true);
  });

  it.each([
    '',
    '.',
    'a.',
    '.a',
    'a..b',
    'a b',
    'a\n',
    'é',
    'a.*',
    '*',
    'x'.repeat(257),
    'waybill.x',
    'a\u0000',
  ])('refuses %j', (text) => {
    expect(isEventType(text)).toBe(false);
  });
});

describe('subscription entries', () => {
  it('[row 66] reads null, an empty list and a star as everything', () => {
    for (const asked of [null, [], ['*'], ['a', '*']]) expect(readEventTypes(asked)).toEqual(['*']);
  });

  it('keeps entries as they are, in order, without repeats', () => {
    expect(readEventTypes(['payment.*', 'a.*.c', 'Order.created', 'payment.*'])).toEqual([
      'payment.*',
      'a.*.c',
      'Order.created',
    ]);
  });

  it.each(['pay*', 'a.**', '', 'a.', 'a b', 'waybill.*', 'waybill.*.x', 'x'.repeat(257)])(
    'refuses %j',
    (entry) => {
      expect(readEventTypes([entry])).toBeNull();
      expect(readEventTypes(['*', entry])).toBeNull();
    },
  );

  it('takes an operator event by its literal name', () => {
    expect(readEventTypes(['waybill.endpoint.disabled'])).toEqual(['waybill.endpoint.disabled']);
  });

  it('takes 100 entries and refuses 101', () => {
    const entries = Array.from({ length: 101 }, (_, index) => `type.n${index}`);
    expect(readEventTypes(entries.slice(1))).toHaveLength(100);
    expect(readEventTypes(entries)).toBeNull();
  });
});
