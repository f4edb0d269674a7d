import { describe, expect, it } from 'vitest';
import { derivedId, formatId, idTime, newId, parseId, readId } from './ids.js';

describe('ids', () => {
  it('come back from their prefixed form', () => {
    const uuid = newId();
    expect(formatId('event', uuid)).toMatch(/^evt_[0-9a-f]{32}$/);
    expect(parseId('event', formatId('event', uuid))).toBe(uuid);
  });

  it('of another kind, or misspelt, are refused with their own code', () => {
    const id = formatId('endpoint', newId());
    expect(readId('event', id)).toBeNull();
    for (const text of [
      id,
      '',
      'evt_',
      `${formatId('event', newId())}0`,
      formatId('event', newId()).toUpperCase(),
    ]) {
      expect(() => parseId('event', text)).toThrow(expect.objectContaining({ code: 'invalid_id' }));
    }
  });

  it('are version 7 and carry their millisecond', () => {
    const at = Date.UTC(2026, 10, 30, 12, 0, 0, 7);
    expect(newId(at)).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    expect(idTime(newId(at)).getTime()).toBe(at);
    expect(idTime(derivedId(newId(at), newId())).getTime()).toBe(at);
  });

  it('derived from the same pair are the same, from another pair others', () => {
    const [parent, child, other] = [newId(), newId(), newId()];
    expect(derivedId(parent, child)).toBe(derivedId(parent, child));
    expect(derivedId(parent, child)).not.toBe(derivedId(parent, other));
  });
});
