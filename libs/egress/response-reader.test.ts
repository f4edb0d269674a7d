import { describe, expect, it } from 'vitest';
import { allCuts, readResponse, type ReadResponse } from '../../test/support/read-response.js';
import { ResponseReader } from './response-reader.js';

const KEPT = 4_000;
const latin1 = (text: string): Buffer => Buffer.from(text, 'latin1');
const ok = (fields: string, rest = ''): string => `HTTP/1.1 200 OK\r\n${fields}\r\n${rest}`;
/** Whatever pieces these bytes come in, this is what is told; `alone`: nothing else is either. */
const expectRead = (text: string, wanted: Partial<ReadResponse>, hangsUp = false): void => {
  for (const pieces of allCuts(latin1(text))) {
    expect(
      readResponse(pieces, hangsUp),
      `${pieces.length} pieces, the first of ${pieces[0]?.length}`,
    ).toMatchObject(wanted);
  }
};
const broken = { fault: 'protocol_error' };
const brokenHead = { ...broken, body: '' };
const expectBrokenHead = (text: string): void => {
  expectRead(text, brokenHead);
  for (const pieces of allCuts(latin1(text))) expect(readResponse(pieces)).not.toHaveProperty('status');
};

describe('status lines', () => {
  it.each([
    ['HTTP/1.1 200 OK', 200, KEPT],
    ['HTTP/1.1 200 ', 200, KEPT],
    ['HTTP/1.1 200', 200, KEPT],
    ['HTTP/1.1 999 Ol\xe9!\t~', 999, KEPT],
    ['HTTP/1.0 404 Not Found', 404, 0],
  ])('takes %j', (line, status, keepMs) => {
    expectRead(`${line}\r\ncontent-length: 0\r\n\r\n`, { status, keepMs, body: '' });
    expectRead(`${line}\ncontent-length: 0\n\n`, { status, keepMs, body: '' });
  });

  it.each([
    'HTTP/1.2 200 OK\r\n',
    'HTTP/2 200 OK\r\n',
    'http/1.1 200 OK\r\n',
    'HTTP/1.1  200 OK\r\n',
    'HTTP/1.1 099 OK\r\n',
    'HTTP/1.1 20 OK\r\n',
    'HTTP/1.1 2000 OK\r\n',
    'HTTP/1.1 2x0 OK\r\n',
    'HTTP/1.1 200\tOK\r\n',
    'HTTP/1.1 200 O\0K\r\n',
    'HTTP/1.1 200 O\rK\r\n',
    'HTTP/1.1 200 OK\r\r\n',
    '\r\nHTTP/1.1 200 OK\r\n',
    '<html>',
    'SSH-2.0-x\r\n',
  ])('refuses %j', (line) => {
    expectBrokenHead(`${line}content-length: 0\r\n\r\n`);
  });

  it('refuses what is no HTTP before its line has ended', () => {
    expect(readResponse([latin1('HTTQ')])).toMatchObject(brokenHead);
  });
});

describe('headers', () => {
  it.each([
    ['retry-after: 7', { retryAfter: '7' }],
    ['Retry-After:7', { retryAfter: '7' }],
    ['RETRY-AFTER: \t 7 \t', { retryAfter: '7' }],
    ['retry-after:', { retryAfter: '' }],
    ['retry-after: 1\r\nretry-after: 2', { retryAfter: '1, 2' }],
    ['location: /a\r\nlocation: /b', { location: '/a' }],
    ['location: /\xc3\xa0', { location: '/\xc3\xa0' }],
    ['location: a\r\n b\r\n\tc', { location: 'a b c' }],
    ['location:\r\n  a', { location: 'a' }],
    ['location: a\r\n \r\nretry-after: 1', { location: 'a', retryAfter: '1' }],
    ['x-other: a\r\n folded: b\r\nlocation: c', { location: 'c' }],
    ['retry-afte: 1\r\nretry-afterr: 2\r\nxretry-after: 3\r\n__proto__: 4', { retryAfter: null }],
    ["!#$%&'*+-.^_`|~09azAZ: x", {}],
    ['x: \x80\xff\t~', {}],
  ])('reads %j', (fields, wanted) => {
    expectRead(ok(`${fields}\r\ncontent-length: 0\r\n`), { status: 200, keepMs: KEPT, ...wanted });
    expectRead(ok(`${fields}\r\ncontent-length: 0\r\n`).replaceAll('\r\n', '\n'), {
      keepMs: KEPT,
      ...wanted,
    });
  });

  it.each([
    'no colon\r\n',
    'name : value\r\n',
    ': value\r\n',
    'na\xe9me: value\r\n',
    'na(me: value\r\n',
    'na\0me: value\r\n',
    'name\r\n: value\r\n',
    ' folded: too early\r\n',
    'name: a\0b\r\n',
    'name: a\x01b\r\n',
    'name: a\x7fb\r\n',
    'name: a\rb\r\n',
    'name: a\r\r\n',
    'name: a\r\n\rb: c\r\n',
  ])('refuses %j', (fields) => {
    expectBrokenHead(ok(`${fields}content-length: 0\r\n`));
  });

  it('[H18] takes a head of 16,384 bytes and none of one more', () => {
    const start = 'HTTP/1.1 200 OK\r\ncontent-length: 0\r\nx: ';
    const head = (bytes: number): Buffer => latin1(`${start}${'y'.repeat(bytes - start.length - 4)}\r\n\r\n`);
    expect(readResponse([head(16_384)])).toMatchObject({ status: 200, keepMs: KEPT });
    expect(readResponse([head(16_385)])).toEqual({ body: '', fault: 'headers_overflow' });
    expect(readResponse(Array.from(head(16_384), (byte) => Buffer.of(byte)))).toMatchObject({ status: 200 });
    expect(readResponse(Array.from(head(16_385), (byte) => Buffer.of(byte)))).toMatchObject({
      fault: 'headers_overflow',
    });
  });

  it('[H18] gives a response its own 16,384 bytes, and those before it as many together', () => {
    const early = latin1(`HTTP/1.1 103 X\r\nlink: ${'y'.repeat(5_000)}\r\n\r\n`);
    expect(readResponse([early, early, early, latin1(ok('content-length: 0\r\n'))])).toMatchObject({
      status: 200,
    });
    const many = Array.from({ length: 4 }, () => early);
    expect(readResponse([...many, latin1(ok('content-length: 0\r\n'))])).toEqual({
      body: '',
      fault: 'protocol_error',
    });
    const long = latin1(`HTTP/1.1 103 X\r\nlink: ${'y'.repeat(16_384)}`);
    expect(readResponse([early, long])).toEqual({ body: '', fault: 'headers_overflow' });
  });
});

describe('responses before the last one', () => {
  it('skips 100, 102, 103 and the like, with all they say', () => {
    const before = `HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 X\r\ncontent-length: 9\r\nlocation: /no\r\n\r\nHTTP/1.0 199\r\nconnection: close\r\n\r\n`;
    expectRead(before + ok('content-length: 2\r\n', 'ok'), {
      status: 200,
      location: null,
      body: 'ok',
      keepMs: KEPT,
    });
  });

  it('refuses to change the protocol', () => {
    expectBrokenHead('HTTP/1.1 101 X\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n');
  });
});

describe('where a response ends', () => {
  it.each<[string, string, Partial<ReadResponse>]>([
    ['a length', ok('content-length: 5\r\n', 'hello'), { body: 'hello', keepMs: KEPT }],
    ['no bytes', ok('content-length: 0\r\n'), { body: '', keepMs: KEPT }],
    ['a length with zeros', ok('content-length: 005\r\n', 'hello'), { body: 'hello', keepMs: KEPT }],
    [
      'a length twice',
      ok('content-length: 5\r\nContent-Length: 5\r\n', 'hello'),
      { body: 'hello', keepMs: KEPT },
    ],
    ['a length in a list', ok('content-length: 5, 5,5\r\n', 'hello'), { body: 'hello', keepMs: KEPT }],
    ['204', 'HTTP/1.1 204 X\r\n\r\n', { body: '', keepMs: KEPT }],
    ['304', 'HTTP/1.1 304 X\r\n\r\n', { body: '', keepMs: KEPT }],
    ['204 that announces a body', 'HTTP/1.1 204 X\r\ncontent-length: 4\r\n\r\n', { body: '', keepMs: 0 }],
    [
      '304 that announces chunks',
      'HTTP/1.1 304 X\r\ntransfer-encoding: chunked\r\n\r\n',
      { body: '', keepMs: 0 },
    ],
    ['204 with a body', 'HTTP/1.1 204 X\r\n\r\nbody', { body: '', keepMs: 0 }],
    ['bytes after the end', ok('content-length: 2\r\n', 'ok\r\n'), { body: 'ok', keepMs: 0 }],
    [
      'a second response',
      ok('content-length: 2\r\n', ok('content-length: 0\r\n', 'ok')),
      { body: 'HT', keepMs: 0 },
    ],
    [
      'chunks',
      ok('transfer-encoding: chunked\r\n', '2\r\nhe\r\n003\r\nllo\r\n0\r\n\r\n'),
      { body: 'hello', keepMs: KEPT },
    ],
    [
      'chunks with extensions and trailers',
      ok(
        'Transfer-Encoding: Chunked\r\n',
        'A;a=b;c="d e"\r\n0123456789\r\n1 ; x\r\n!\r\n00\t\r\nlocation: /t\r\n x\r\ncontent-length: 9\r\n\r\n',
      ),
      { body: '0123456789!', keepMs: KEPT, location: null },
    ],
    ['chunks and more', ok('transfer-encoding: chunked\r\n', '0\r\n\r\nx'), { body: '', keepMs: 0 }],
    [
      'chunks beside a length',
      ok('content-length: 99\r\ntransfer-encoding: chunked\r\n', '1\r\na\r\n0\r\n\r\n'),
      { body: 'a', keepMs: 0 },
    ],
    [
      'chunks of something coded',
      ok('transfer-encoding: gzip\r\ntransfer-encoding: chunked\r\n', '1\r\na\r\n0\r\n\r\n'),
      { body: 'a', keepMs: 0 },
    ],
    [
      'chunks of HTTP/1.0',
      'HTTP/1.0 200 OK\r\nconnection: keep-alive\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n',
      { body: 'a', keepMs: 0 },
    ],
  ])('finds it with %s', (_what, text, wanted) => {
    expectRead(text, wanted);
    for (const pieces of allCuts(latin1(text))) expect(readResponse(pieces)).not.toHaveProperty('fault');
  });

  it.each([
    ['no framing', ok('', 'hello')],
    ['another coding', ok('transfer-encoding: gzip\r\n', 'hello')],
    ['chunks that are coded', ok('transfer-encoding: chunked, gzip\r\n', 'hello')],
    ['another coding beside a length', ok('transfer-encoding: gzip\r\ncontent-length: 2\r\n', 'hello')],
    ['an empty coding', ok('transfer-encoding:\r\ncontent-length: 2\r\n', 'hello')],
  ])('reads until the connection closes with %s', (_what, text) => {
    expectRead(text, { status: 200, body: 'hello', keepMs: 0 }, true);
    expect(readResponse([latin1(text)])).not.toHaveProperty('keepMs');
  });

  it.each(['1, 2', '5,', ',5', '-5', '+5', '0x5', '5.0', '5 5', '', '1e3', '9007199254740992', '5, 05'])(
    'refuses the length %j',
    (length) => {
      expectBrokenHead(ok(`content-length: ${length}\r\n`, 'hello'));
    },
  );

  it('refuses two lengths that differ', () => {
    expectBrokenHead(ok('content-length: 1\r\ncontent-length: 2\r\n', 'ab'));
  });
});

describe('broken bodies', () => {
  it.each([
    ['x\r\n', ''],
    ['\r\n', ''],
    [';a\r\n', ''],
    ['-1\r\n', ''],
    ['0x1\r\n', ''],
    ['2\nok', ''],
    ['2\rok', ''],
    ['2;a\nok', ''],
    ['2;\0\r\nok', ''],
    ['20000000000000\r\n', ''],
    ['00000000000001\r\n', ''],
    ['2\r\nok0\r\n\r\n', 'ok'],
    ['2\r\nok\n0\r\n\r\n', 'ok'],
    ['2\r\nok\r0\r\n\r\n', 'ok'],
    ['2\r\nok\r\n0\r\nno colon\r\n\r\n', 'ok'],
    ['2\r\nok\r\n0\r\na: \0\r\n\r\n', 'ok'],
  ])('keeps the status of a response whose chunks are %j', (chunks, body) => {
    expectRead(ok('transfer-encoding: chunked\r\n', chunks), { status: 200, body, ...broken });
    for (const pieces of allCuts(latin1(ok('transfer-encoding: chunked\r\n', chunks)))) {
      expect(readResponse(pieces)).not.toHaveProperty('keepMs');
    }
  });

  it.each([
    ['a length', ok('content-length: 5\r\n', 'hel'), 'hel'],
    ['a chunk', ok('transfer-encoding: chunked\r\n', '5\r\nhel'), 'hel'],
    ['chunks', ok('transfer-encoding: chunked\r\n', '3\r\nhel\r\n'), 'hel'],
    ['trailers', ok('transfer-encoding: chunked\r\n', '0\r\n'), ''],
  ])('keeps the status of a response whose %s a hang-up cuts off', (_what, text, body) => {
    expectRead(text, { status: 200, body, fault: 'connection_reset' }, true);
  });

  it.each([
    '',
    'HTTP/1.1 200 OK\r\n',
    'HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r',
    'HTTP/1.1 103 X\r\n\r\n',
  ])('knows no status when a hang-up comes after %j', (text) => {
    expectRead(text, { fault: 'connection_reset' }, true);
    expect(readResponse([latin1(text)], true)).not.toHaveProperty('status');
  });

  it('[H18] bounds extensions and trailers', () => {
    const chunked = latin1(ok('transfer-encoding: chunked\r\n'));
    const extension = latin1(`1;${'e'.repeat(10_000)}\r\na\r\n`);
    expect(readResponse([chunked, extension])).not.toHaveProperty('fault');
    expect(readResponse([chunked, extension, extension])).toMatchObject({ body: 'a', ...broken });
    const trailer = latin1(`a: ${'t'.repeat(10_000)}\r\n`);
    expect(readResponse([chunked, latin1('0\r\n'), trailer, trailer])).toMatchObject({
      status: 200,
      fault: 'headers_overflow',
    });
  });
});

describe('how long a connection is kept', () => {
  it.each([
    ['connection: close', 0],
    ['Connection: Keep-Alive, CLOSE', 0],
    ['connection: x\r\nconnection: close', 0],
    ['connection: closed', KEPT],
    ['connection: keep-alive', KEPT],
    ['keep-alive: timeout=5', KEPT],
    ['keep-alive: timeout=3, max=100', 2_000],
    ['Keep-Alive: max=100, Timeout = "2"', 1_000],
    ['keep-alive: timeout=1', 0],
    ['keep-alive: timeout=0', 0],
    ['keep-alive: timeout=99999999999999999999', KEPT],
    ['keep-alive: mytimeout=1', KEPT],
    ['keep-alive: timeout=soon', KEPT],
  ])('with %j', (fields, keepMs) => {
    expectRead(ok(`${fields}\r\ncontent-length: 0\r\n`), { keepMs });
  });

  it('keeps one of HTTP/1.0 only when that asks for it', () => {
    const old = (fields: string): string => `HTTP/1.0 200 OK\r\n${fields}content-length: 0\r\n\r\n`;
    expectRead(old(''), { keepMs: 0 });
    expectRead(old('connection: Keep-Alive\r\n'), { keepMs: KEPT });
    expectRead(old('connection: keep-alive, close\r\n'), { keepMs: 0 });
  });
});

describe('a reader', () => {
  it('tells nothing more once it is stopped in the middle of a piece', () => {
    const reader = new ResponseReader();
    let told = 0;
    reader.begin({
      onHead: () => undefined,
      onBody: () => {
        told += 1;
        reader.stop();
      },
      onEnd: () => void (told += 100),
      onFault: () => void (told += 100),
    });
    const text = latin1(ok('transfer-encoding: chunked\r\n', '1\r\na\r\n1\r\nb\r\n0\r\n\r\n'));
    reader.read(text, text.length);
    reader.close();
    expect([told, reader.isWaiting]).toEqual([1, false]);
  });

  it('takes a body that should end with the connection as cut off when that fails instead', () => {
    const reader = new ResponseReader();
    const told: unknown[] = [];
    reader.begin({
      onHead: (status) => void told.push(status),
      onBody: (_bytes, from, to) => void told.push(to - from),
      onEnd: () => void told.push('end'),
      onFault: (error) => void told.push(error.message),
    });
    const text = latin1(ok('', 'abc'));
    reader.read(text, text.length);
    reader.fail(new Error('reset'));
    reader.fail(new Error('once more'));
    reader.close();
    expect(told).toEqual([200, 3, 'reset']);
  });

  it('reads one response after another, and nothing of the first is left in the second', () => {
    const reader = new ResponseReader();
    const told: unknown[] = [];
    const sink = {
      onHead: (...head: unknown[]) => void told.push(head),
      onBody: () => undefined,
      onEnd: (keepMs: number) => void told.push(keepMs),
      onFault: (error: Error) => void told.push(error),
    };
    for (const text of [
      ok(
        'location: /a\r\nretry-after: 1\r\ntransfer-encoding: chunked\r\nkeep-alive: timeout=2\r\n',
        '0\r\na: b\r\n\r\n',
      ),
      ok('content-length: 0\r\n'),
    ]) {
      reader.begin(sink);
      reader.read(latin1(text), text.length);
    }
    expect(told).toEqual([[200, '1', '/a'], 1_000, [200, null, null], KEPT]);
  });
});
