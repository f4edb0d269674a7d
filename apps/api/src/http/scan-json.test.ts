import { describe, expect, it } from 'vitest';
import { AppError } from '#runtime';
import { OBJECT_LIMITS, scanJson, type JsonNode } from './scan-json.js';

const ANY_TREE = { ...OBJECT_LIMITS, captureDepth: 0 };

function codeOf(bytes: Buffer, limits = OBJECT_LIMITS): string {
  try {
    scanJson(bytes, limits);
    return 'ok';
  } catch (error) {
    return error instanceof AppError ? error.code : `not an AppError: ${String(error)}`;
  }
}

function textOf(bytes: Buffer, node: JsonNode | undefined): string | undefined {
  return node && bytes.toString('utf8', node.start, node.end);
}

function keys(count: number): string {
  return `{${Array.from({ length: count }, (_, index) => `"k${index}":0`).join(',')}}`;
}

describe('scanJson', () => {
  it('[H08] gives the payload byte for byte, odd white space and all', () => {
    const payload =
      '{"b":136.0,"a":12345678901234567890,"e":1E5, "z" :-0,\t"u":"\\u00e9\\ud83d\\ude00","s":"a\\/b","n":1.10,"dup":1,"dup":2}';
    const body = Buffer.from(` {"event_type" : "a.b" ,\r\n"payload":\t${payload} ,"metadata":{}} \n`);
    const fields = scanJson(body).fields!;
    expect([...fields.keys()]).toEqual(['event_type', 'payload', 'metadata']);
    expect(textOf(body, fields.get('payload'))).toBe(payload);
  });

  it('[H09] takes an escaped NUL and refuses a raw one', () => {
    const body = Buffer.from('{"payload":{"x\\u0000":"a\\u0000b"}}');
    expect(textOf(body, scanJson(body).fields!.get('payload'))).toBe('{"x\\u0000":"a\\u0000b"}');
    expect(codeOf(Buffer.from('{"payload":"a\u0000b"}'))).toBe('invalid_json');
    expect(codeOf(Buffer.from('{}\u0000'))).toBe('invalid_json');
  });

  it('refuses a field given twice, however it is spelled, but leaves the inside of a payload alone', () => {
    expect(codeOf(Buffer.from('{"payload":1,"payload":2}'))).toBe('duplicate_field');
    expect(codeOf(Buffer.from('{"payload":1,"p\\u0061yload":2}'))).toBe('duplicate_field');
    expect(codeOf(Buffer.from('{"payload":{"a":1,"a":2}}'))).toBe('ok');
  });

  it('knows names that every JavaScript object has', () => {
    const body = Buffer.from('{"__proto__":1,"constructor":2}');
    expect([...scanJson(body).fields!.keys()]).toEqual(['__proto__', 'constructor']);
  });

  it('gives the fields of every element of a batch', () => {
    const body = Buffer.from('{"events":[{"payload":[1, 2]},{"payload":"x","event_type":"a"}, 7]}');
    const limits = { ...OBJECT_LIMITS, captureDepth: 3, itemsMax: 3 };
    const items = scanJson(body, limits).fields!.get('events')!.items!;
    expect(items.map((item) => textOf(body, item.fields?.get('payload')))).toEqual([
      '[1, 2]',
      '"x"',
      undefined,
    ]);
    expect(codeOf(body, { ...limits, itemsMax: 2 })).toBe('too_many_events');
  });

  it('finds the fault of one element of a batch in that element, and of the body around them in none', () => {
    const limits = { ...OBJECT_LIMITS, captureDepth: 3, itemsMax: 5 };
    const elements = [
      '{"a":1,"a":2}',
      '{"p":{"a":1,"a":2}}',
      keys(10_001),
      `{"p":${keys(9_999)}}`,
      keys(10_000),
    ];
    const body = Buffer.from(`{"events":[${elements.join()}],"mode":1}`);
    const items = scanJson(body, limits).fields!.get('events')!.items!;
    expect(items.map(({ fault }) => fault?.code)).toEqual([
      'duplicate_field',
      undefined,
      'json_too_many_keys',
      undefined,
      undefined,
    ]);
    expect(codeOf(Buffer.from('{"events":[{}],"events":[]}'), limits)).toBe('duplicate_field');
  });

  it('takes 100 levels and refuses 101, also when 100,000 follow', () => {
    expect(codeOf(Buffer.from('['.repeat(100) + ']'.repeat(100)), ANY_TREE)).toBe('ok');
    expect(codeOf(Buffer.from('['.repeat(101) + ']'.repeat(101)), ANY_TREE)).toBe('json_too_deep');
    expect(codeOf(Buffer.from('['.repeat(100_000)))).toBe('json_too_deep');
  });

  it('takes 10,000 keys and refuses one more', () => {
    expect(codeOf(Buffer.from(keys(10_000)))).toBe('ok');
    expect(codeOf(Buffer.from(keys(10_001)))).toBe('json_too_many_keys');
    expect(codeOf(Buffer.from(`{"payload":${keys(200_000)}}`))).toBe('json_too_many_keys');
  });

  it('counts the keys of each event of a batch by themselves', () => {
    const event = `{"payload":${keys(6_000)}}`;
    const limits = { ...OBJECT_LIMITS, captureDepth: 3, itemsMax: 9 };
    expect(codeOf(Buffer.from(`{"events":[${event},${event}]}`), limits)).toBe('ok');
  });

  it('refuses a byte order mark, invalid UTF-8 and UTF-16', () => {
    expect(codeOf(Buffer.from('\ufeff{}'))).toBe('invalid_encoding');
    expect(codeOf(Buffer.from([0x22, 0xc3, 0x28, 0x22]))).toBe('invalid_encoding');
    expect(codeOf(Buffer.from([0x22, 0xed, 0xa0, 0x80, 0x22]))).toBe('invalid_encoding');
    expect(codeOf(Buffer.from('{}', 'utf16le'))).toBe('invalid_json');
  });

  it.each([
    '',
    ' ',
    '{',
    '[',
    '"',
    '"\\',
    '"\\u12',
    '"\\x"',
    '01',
    '-',
    '1.',
    '.5',
    '+1',
    '1e',
    '1e+',
    'tru',
    'nulL',
    'NaN',
    '[1,]',
    '[,1]',
    '{"a":1,}',
    '{,}',
    '{"a"}',
    '{"a":}',
    '{a:1}',
    "{'a':1}",
    '[1 2]',
    '{"a" 1}',
    '1 2',
    '{}{}',
    ']',
    '}',
    '[}',
    '{]',
    '"\t"',
    '"\n"',
    '\u00a01',
    '1\f',
    '//',
    '[1]//',
    '0x10',
    '1_0',
    '\ud800',
  ])('agrees with JSON.parse about %j', (text) => {
    expect(codeOf(Buffer.from(text), ANY_TREE)).not.toBe('ok');
  });

  it('agrees with JSON.parse about 40,000 mutated documents', () => {
    const seed = Number(process.env['WAYBILL_TEST_SEED'] ?? Date.now() % 1_000_000);
    const random = mulberry32(seed);
    const pick = (text: string): string => text[Math.floor(random() * text.length)]!;
    const alphabet = '{}[],:"\\ \t\n0123456789-+.eEtrufalsn\u0000\u001fé😀/u00';
    for (let round = 0; round < 40_000; round += 1) {
      let text = JSON.stringify(randomValue(random, 4), null, random() < 0.3 ? 1 : 0);
      const edits = Math.floor(random() * 3);
      for (let edit = 0; edit < edits; edit += 1) {
        const place = Math.floor(random() * (text.length + 1));
        text =
          text.slice(0, place) +
          (random() < 0.6 ? pick(alphabet) : '') +
          text.slice(place + (random() < 0.6 ? 1 : 0));
      }
      const bytes = Buffer.from(text);
      const seen = codeOf(bytes, ANY_TREE) === 'ok';
      expect(seen, `seed ${seed} round ${round}: ${JSON.stringify(text)}`).toBe(
        parses(bytes.toString('utf8')),
      );
    }
  });
});

function parses(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

function randomValue(random: () => number, depth: number): unknown {
  const kind = Math.floor(random() * (depth === 0 ? 5 : 7));
  const size = Math.floor(random() * 4);
  if (kind === 0) return null;
  if (kind === 1) return random() < 0.5;
  if (kind === 2) return (random() - 0.5) * 10 ** Math.floor(random() * 40 - 20);
  if (kind === 3) return Math.floor(random() * 1000) - 500;
  if (kind === 4)
    return Array.from({ length: size }, () => String.fromCodePoint(Math.floor(random() * 0x2ff))).join('');
  if (kind === 5) return Array.from({ length: size }, () => randomValue(random, depth - 1));
  return Object.fromEntries(
    Array.from({ length: size }, (_, index) => [`k${index}`, randomValue(random, depth - 1)]),
  );
}

function mulberry32(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
