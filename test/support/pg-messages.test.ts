import { describe, expect, it } from 'vitest';

import { ClientMessageReader, ReadyForQueryScanner, readStrings, wholeMessage } from './pg-messages.js';

function typed(type: string, body: Buffer | string): Buffer {
  const bytes = Buffer.from(body);
  const head = Buffer.alloc(5);
  head.write(type);
  head.writeUInt32BE(bytes.length + 4, 1);
  return Buffer.concat([head, bytes]);
}

const startup = Buffer.from([0, 0, 0, 9, 0, 3, 0, 0, 0]);
const pipeline = [
  typed('P', 'name\0select $1\0\0\0'),
  typed('B', '\0name\0\0\0'),
  typed('E', '\0\0\0\0\0'),
  typed('S', ''),
];
const stream = Buffer.concat([startup, ...pipeline]);

function readIn(chunkBytes: number): { type: string; whole: string }[] {
  const reader = new ClientMessageReader();
  const found: { type: string; whole: string }[] = [];
  for (let at = 0; at < stream.length; at += chunkBytes) {
    for (const message of reader.read(stream.subarray(at, at + chunkBytes))) {
      if (message.type === 'startup') reader.startupDone();
      found.push({ type: message.type, whole: wholeMessage(message).toString('hex') });
    }
  }
  return found;
}

describe('the messages of a client', () => {
  it.each([1, 2, 3, 4, 5, 6, 7, 11, 13, stream.length])(
    'are found whole when they come %i bytes at a time',
    (size) => {
      expect(readIn(size)).toEqual([
        { type: 'startup', whole: startup.toString('hex') },
        ...pipeline.map((message) => ({
          type: message.toString('latin1', 0, 1),
          whole: message.toString('hex'),
        })),
      ]);
    },
  );

  it('are not copied when they come in one piece', () => {
    const reader = new ClientMessageReader();
    reader.startupDone();
    const [message] = [...reader.read(pipeline[0]!)];
    expect(message!.parts[0]!.buffer).toBe(pipeline[0]!.buffer);
  });

  it('give their strings', () => {
    expect(readStrings(pipeline[0]!, 2)).toEqual(['name', 'select $1']);
  });
});

describe('the answers of a server', () => {
  const answers = [
    typed('D', Buffer.alloc(50, 'Z')),
    typed('Z', 'I'),
    typed('N', 'Z'),
    typed('D', ''),
    typed('Z', 'T'),
  ];
  const all = Buffer.concat(answers);
  const wanted = [answers[0]!.length + 6, all.length];

  it.each([1, 2, 3, 5, 6, 7, 50, all.length])(
    'end where ReadyForQuery ends, when they come %i bytes at a time',
    (size) => {
      const scanner = new ReadyForQueryScanner();
      const found: number[] = [];
      for (let at = 0; at < all.length; at += size) {
        for (const end of scanner.ends(all.subarray(at, at + size))) found.push(at + end);
      }
      expect(found).toEqual(wanted);
    },
  );
});
