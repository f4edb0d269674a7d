import { describe, expect, it } from 'vitest';
import { fingerprint } from '../publish/fingerprint.js';
import { canonicalJson } from './canonical-json.js';
import { type CreationContent, fingerprintCreation } from './fingerprint-creation.js';

const CONTENT = { method: 'POST', route: '/v1/things/:id', params: { id: 'a' }, body: { a: 1, b: [1, 2] } };
const of = (change: Partial<CreationContent>): string =>
  fingerprintCreation({ ...CONTENT, ...change }).toString('hex');

describe('the fingerprint of a creation', () => {
  it('is the same for the same content, however its fields are ordered', () => {
    expect(of({ body: { b: [1, 2], a: 1 } })).toBe(of({}));
    expect(of({ body: undefined })).toBe(of({ body: {} }));
  });

  it('is another one for another method, route, parameter or body', () => {
    const all = [
      of({}),
      of({ method: 'PUT' }),
      of({ route: '/v1/things' }),
      of({ params: { id: 'b' } }),
      of({ body: { a: 1, b: [2, 1] } }),
      of({ body: { a: '1', b: [1, 2] } }),
      of({ body: { a: 1, b: [1, 2], c: null } }),
      of({ body: [] }),
    ];
    expect(new Set(all).size).toBe(all.length);
  });

  it('is none that an event could have: no event type holds a space', () => {
    const event = {
      eventType: 'POST',
      payload: Buffer.from('{}'),
      notBefore: null,
      metadata: null,
      consumer: null,
      idempotencyKey: null,
    };
    expect(fingerprint(event).toString('hex')).not.toBe(of({ params: {}, body: {} }));
  });
});

describe('canonical JSON', () => {
  it.each<[unknown, string]>([
    [{ b: 1, a: { d: [], c: null } }, '{"a":{"c":null,"d":[]},"b":1}'],
    [[{ b: 1, a: 2 }, 'x', true, 1.5], '[{"a":2,"b":1},"x",true,1.5]'],
    ['\u0000"', '"\\u0000\\""'],
    [JSON.parse('{"__proto__":1,"a":2}'), '{"__proto__":1,"a":2}'],
  ])('of %j', (value, text) => {
    expect(canonicalJson(value)).toBe(text);
  });
});
