import { describe, expect, it } from 'vitest';
import { isEventType, OPERATOR_EVENT_TYPES, readEventTypes } from './event-type.js';

const ok = (entries: readonly string[]) => ({ ok: true, entries });

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
    for (const asked of [null, [], ['*'], ['a', '*']]) expect(readEventTypes(asked)).toEqual(ok(['*']));
  });

  it('keeps entries as they are, in order, without repeats', () => {
    expect(readEventTypes(['payment.*', 'a.*.c', 'Order.created', 'payment.*'])).toEqual(
      ok(['payment.*', 'a.*.c', 'Order.created']),
    );
  });

  it.each(['pay*', 'a.**', '', 'a.', 'a b', 'x'.repeat(257)])('refuses %j, and says where', (entry) => {
    const reason = expect.stringMatching(/^must be dot-separated segments/);
    expect(readEventTypes([entry])).toEqual({ ok: false, index: 0, reason });
    expect(readEventTypes(['*', entry])).toEqual({ ok: false, index: 1, reason });
  });

  it('takes the operator events by their literal names', () => {
    expect(readEventTypes(OPERATOR_EVENT_TYPES)).toEqual(ok(OPERATOR_EVENT_TYPES));
    expect(OPERATOR_EVENT_TYPES).toHaveLength(3);
  });

  it.each(['waybill.*', 'waybill.*.x', 'waybill.endpoint.disabld', 'waybill.x', 'waybill.endpoint.*'])(
    'refuses %j, which no operator event is called, and lists those there are',
    (entry) => {
      const reason = `must be one of waybill.endpoint.disabled, waybill.endpoint.recovered, waybill.delivery.dead under waybill., not ${entry}`;
      expect(readEventTypes(['a', entry])).toEqual({ ok: false, index: 1, reason });
    },
  );

  it('takes 100 entries and refuses 101', () => {
    const entries = Array.from({ length: 101 }, (_, index) => `type.n${index}`);
    expect(readEventTypes(entries.slice(1))).toEqual(ok(entries.slice(1)));
    expect(readEventTypes(entries)).toEqual({
      ok: false,
      index: null,
      reason: 'must be at most 100 entries',
    });
  });
});
