import { describe, expect, it } from 'vitest';
import { ResponseReader } from './response-reader.js';

const latin1 = (text: string): Buffer => Buffer.from(text, 'latin1');
const ok = (fields: string): string => `HTTP/1.1 200 OK\r\n${fields}\r\n`;

describe('what a reader looks at', () => {
  /** Feeds bytes that count how often they are looked at; text that is made of them counts each byte it takes. */
  const countLooks = (pieces: Iterable<Buffer>): { looks: number; told: string[] } => {
    const counted = { looks: 0, told: [] as string[] };
    const reader = new ResponseReader();
    reader.begin({
      onHead: (status) => void counted.told.push(String(status)),
      onBody: () => undefined,
      onEnd: () => void counted.told.push('end'),
      onFault: (error) => void counted.told.push(String(Reflect.get(error, 'kind'))),
    });
    for (const piece of pieces) {
      const watched = new Proxy(piece, {
        get(bytes, key) {
          if (key === 'toString') {
            return (encoding: 'latin1', from: number, to: number) => {
              counted.looks += to - from;
              return bytes.toString(encoding, from, to);
            };
          }
          counted.looks += 1;
          return Reflect.get(bytes, key, bytes) as unknown;
        },
      });
      reader.read(watched, piece.length);
    }
    return counted;
  };
  const drip = function* (bytes: Buffer): Generator<Buffer> {
    for (let at = 0; at < bytes.length; at += 1) yield bytes.subarray(at, at + 1);
  };
  // A byte is looked at by what ends a run, by what begins the next, and once more where text is made of it.
  const LOOKS_A_BYTE = 4;

  it.each([
    ['one long header', `location: ${'x'.repeat(20_000)}`],
    ['one long name', 'x'.repeat(20_000)],
    ['many short headers', 'a: b\r\n'.repeat(4_000)],
    ['many headers that count', 'connection: x\r\n'.repeat(2_000)],
    ['one long fold', `location: a${'\r\n b'.repeat(6_000)}`],
  ])('[H18] never goes back to its start in a head of %s that drips byte by byte', (_what, fields) => {
    const { looks, told } = countLooks(drip(latin1(ok(fields))));
    expect(told).toEqual(['headers_overflow']);
    expect(looks).toBeLessThan(LOOKS_A_BYTE * 16_384);
  });

  it.each([
    ['headers', ok('x-a: b\r\n'.repeat(100_000))],
    ['one line', ok('x'.repeat(65_536))],
  ])('[H18] looks at no more than 16 KiB when 64 KiB of %s come at once', (_what, text) => {
    const { looks, told } = countLooks([latin1(text).subarray(0, 65_536)]);
    expect(told).toEqual(['headers_overflow']);
    expect(looks).toBeLessThan(LOOKS_A_BYTE * 16_384);
  });

  it('[H18] reads 16 KiB of early hints, each byte a few times, and gives up a flood of them there', () => {
    const hint = 'HTTP/1.1 103 X\r\na: b\r\n\r\n';
    const most = latin1(hint.repeat(Math.floor(16_384 / hint.length)));
    const answered = countLooks([most, latin1(ok('content-length: 0\r\n'))]);
    expect(answered.told).toEqual(['200', 'end']);
    expect(answered.looks).toBeLessThan(LOOKS_A_BYTE * 16_384);
    const { looks, told } = countLooks([latin1(hint.repeat(100_000))]);
    expect(told).toEqual(['protocol_error']);
    expect(looks).toBeLessThan(LOOKS_A_BYTE * 16_384);
  });

  it('[H18] skips the data of a body without looking at them', () => {
    const data = Buffer.alloc(60_000, 'x');
    const { looks, told } = countLooks([latin1(ok('content-length: 60000\r\n')), data]);
    expect(told).toEqual(['200', 'end']);
    expect(looks).toBeLessThan(1_000);
  });
});
