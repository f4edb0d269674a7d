import { validateHeaderName, validateHeaderValue } from 'node:http';
import { describe, expect, it } from 'vitest';
import { requestHead } from './request-head.js';

const START = 'POST / HTTP/1.1\r\n';
const unsendable = expect.objectContaining({ kind: 'unsendable' });
const accepts = (judge: () => void): boolean => {
  try {
    judge();
    return true;
  } catch {
    return false;
  }
};
/** The characters that go through, of all there are. */
const charactersThat = (pass: (character: string) => boolean): number[] =>
  Array.from({ length: 0x10000 }, (_, code) => code).filter((code) => pass(String.fromCharCode(code)));

describe('requestHead', () => {
  it('writes the headers as they are given, and the length last', () => {
    const headers = [
      ['Webhook-Id', 'dlv_1'],
      ['x-empty', ''],
      ['x-latin1', 'a\tb \xe9'],
      ['Accept-Encoding', 'gzip'],
    ] as const;
    expect(requestHead(START, headers, 42)).toBe(
      `${START}Webhook-Id: dlv_1\r\nx-empty: \r\nx-latin1: a\tb \xe9\r\ncontent-length: 42\r\n\r\n`,
    );
    expect(requestHead(START, [], 0)).toBe(`${START}content-length: 0\r\n\r\n`);
  });

  it('lets through the characters of a value that node:http lets through, at any place', () => {
    const asNode = charactersThat((one) => accepts(() => validateHeaderValue('x', `a${one}b`)));
    expect(asNode).toHaveLength(1 + 95 + 128);
    for (const [before, after] of [
      ['', ''],
      ['a', 'b'],
    ]) {
      const ours = charactersThat(
        (one) =>
          typeof requestHead(
            START,
            [
              ['x-a', 'fine'],
              ['x-b', `${before}${one}${after}`],
            ],
            0,
          ) === 'string',
      );
      expect(ours).toEqual(asNode);
    }
  });

  it('lets through the characters of a name that node:http lets through, at any place', () => {
    const asNode = charactersThat((one) => accepts(() => validateHeaderName(`a${one}b`)));
    for (const [before, after] of [
      ['', 'b'],
      ['a', 'b'],
      ['a', ''],
    ]) {
      expect(
        charactersThat(
          (one) => typeof requestHead(START, [[`${before}${one}${after}`, 'v']], 0) === 'string',
        ),
      ).toEqual(asNode);
    }
  });

  it.each(['', ' ', 'a b', 'a:', 'a\r\nb', 'x-a\r\n', '\r\n', '\0', 'é', '日本'])(
    'refuses the name %j',
    (name) => {
      expect(requestHead(START, [[name, 'v']], 0)).toEqual(unsendable);
      // The verdict is remembered.
      expect(requestHead(START, [[name, 'v']], 0)).toEqual(unsendable);
    },
  );

  it.each([
    'host',
    'Content-Length',
    'TRANSFER-ENCODING',
    'connection',
    'Keep-Alive',
    'upgrade',
    'expect',
    'te',
    'trailer',
  ])('keeps %s to itself', (name) => {
    expect(requestHead(START, [['x-a', 'v'] as const, [name, 'v'] as const], 0)).toEqual(unsendable);
  });
});
