import { describe, expect, it } from 'vitest';
import { AppError } from '#runtime';
import { scanJson } from '../http/scan-json.js';
import { fingerprint } from './fingerprint.js';
import { readEnvelope, type Envelope } from './read-envelope.js';

const NOW_MS = Date.UTC(2026, 0, 1);
const RULES = { eventBytesMax: 100, nowMs: NOW_MS, path: '', takesKey: false };

function read(body: unknown, rules = RULES): Envelope {
  const bytes = Buffer.from(typeof body === 'string' ? body : JSON.stringify(body));
  return readEnvelope(bytes, scanJson(bytes), rules);
}

function refusalOf(body: unknown, rules = RULES): { code: string; field: string | undefined } {
  try {
    read(body, rules);
    return { code: 'ok', field: undefined };
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return { code: error.code, field: error.details[0]?.field };
  }
}

function sized(payloadBytes: number): string {
  return `{"event_type":"a","payload":"${'x'.repeat(payloadBytes - 2)}"}`;
}

function entries(count: number): Record<string, string> {
  return Object.fromEntries(Array.from({ length: count }, (_, at) => [`k${at}`, 'v']));
}

describe('an event as a producer sends it', () => {
  it('[H08] keeps the payload byte for byte', () => {
    const payload = '{"b":136.0 ,"a":12345678901234567890,"e":1E5,"z":-0,"dup":1,"dup":2}';
    expect(read(`{"payload":\n${payload}\t,"event_type":"a.b"}`).payload.toString()).toBe(payload);
  });

  it.each(['null', 'true', '-0.0', '"x"', '[]', '{}'])('takes %s as a payload', (payload) => {
    expect(read(`{"event_type":"a","payload":${payload}}`).payload.toString()).toBe(payload);
  });

  it('takes a payload of the largest size and refuses one byte more', () => {
    expect(read(sized(100)).payload).toHaveLength(100);
    expect(refusalOf(sized(101))).toEqual({ code: 'event_too_large', field: 'payload' });
  });

  it.each([
    [{ payload: 1 }, 'validation_failed', 'event_type'],
    [{ event_type: 'a' }, 'validation_failed', 'payload'],
    [{ event_type: 'a', payload: 1, extra: 1 }, 'unknown_field', 'extra'],
    [{ event_type: 'a', payload: 1, idempotency_key: 'k' }, 'unknown_field', 'idempotency_key'],
    [{ event_type: 'waybill.x', payload: 1 }, 'invalid_event_type', 'event_type'],
    [{ event_type: 'a\u0000', payload: 1 }, 'invalid_event_type', 'event_type'],
    [{ event_type: null, payload: 1 }, 'invalid_event_type', 'event_type'],
    [{ event_type: 'a', payload: 1, not_before: '2026-02-01T00:00:00Z' }, 'validation_failed', 'not_before'],
    [{ event_type: 'a', payload: 1, not_before: 1767225600 }, 'validation_failed', 'not_before'],
    [{ event_type: 'a', payload: 1, metadata: [] }, 'validation_failed', 'metadata'],
    [{ event_type: 'a', payload: 1, metadata: { a: 1 } }, 'validation_failed', 'metadata'],
    [{ event_type: 'a', payload: 1, metadata: { a: 'b\u0000' } }, 'validation_failed', 'metadata'],
    [{ event_type: 'a', payload: 1, metadata: { 'a\u0000': 'b' } }, 'validation_failed', 'metadata'],
    [{ event_type: 'a', payload: 1, metadata: { a: '\ud800' } }, 'validation_failed', 'metadata'],
    [{ event_type: 'a', payload: 1, metadata: { '': 'b' } }, 'validation_failed', 'metadata'],
    [{ event_type: 'a', payload: 1, metadata: { a: 'b'.repeat(513) } }, 'validation_failed', 'metadata'],
    [{ event_type: 'a', payload: 1, metadata: { ['a'.repeat(65)]: 'b' } }, 'validation_failed', 'metadata'],
    [[], 'validation_failed', 'body'],
  ])('[H09] refuses %j', (body, code, field) => {
    expect(refusalOf(body)).toEqual({ code, field });
  });

  it('refuses 17 entries of metadata, takes 16, and keeps their names and order', () => {
    expect(refusalOf({ event_type: 'a', payload: 1, metadata: entries(17) }).code).toBe('validation_failed');
    expect(read({ event_type: 'a', payload: 1, metadata: entries(16) }).metadata).toBe(
      JSON.stringify(entries(16)),
    );
    const odd = '{"event_type":"a","payload":1,"metadata":{ "__proto__" : "x", "constructor":"y" }}';
    expect(read(odd).metadata).toBe('{"__proto__":"x","constructor":"y"}');
  });

  it('takes a time in the past and up to 30 days ahead', () => {
    for (const time of ['2001-01-01T00:00:00Z', '2026-01-31T00:00:00Z']) {
      const { notBefore } = read({ event_type: 'a', payload: 1, not_before: time });
      expect(notBefore).toEqual(new Date(time));
    }
  });

  it('names the place of a fault in a batch, where a key may stand', () => {
    const rules = { ...RULES, path: 'events[3].', takesKey: true };
    expect(read({ event_type: 'a', payload: 1, idempotency_key: '!~' }, rules).idempotencyKey).toBe('!~');
    expect(refusalOf({ event_type: 'a' }, rules).field).toBe('events[3].payload');
    for (const key of ['', 'a b', 'é', 'a\u0000', 'x'.repeat(256), 5]) {
      const refused = refusalOf({ event_type: 'a', payload: 1, idempotency_key: key }, rules);
      expect(refused).toEqual({ code: 'invalid_idempotency_key', field: 'events[3].idempotency_key' });
    }
  });
});

describe('the fingerprint of an event', () => {
  const base = { event_type: 'a', payload: 'x' };

  it('is the same for the same content', () => {
    expect(fingerprint(read(base)).equals(fingerprint(read(base)))).toBe(true);
  });

  it('differs for another type, payload, time or metadata, and for parts moved from one to another', () => {
    const others = [
      base,
      { event_type: 'ab', payload: 'x' },
      { event_type: 'a', payload: 'y' },
      { ...base, not_before: '2026-01-02T00:00:00Z' },
      { ...base, metadata: { a: 'b' } },
      { ...base, metadata: { a: 'c' } },
      '{"event_type":"a","payload": "x" }',
      '{"event_type":"a","payload":["x"]}',
      '{"event_type":"a","payload":[ "x"]}',
    ].map((body) => fingerprint(read(body)).toString('hex'));
    // The seventh differs from the first in the white space around the payload only, which is none of it.
    expect(others[6]).toBe(others[0]);
    expect(new Set(others).size).toBe(others.length - 1);
  });
});
