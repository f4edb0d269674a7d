import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { describe, expect, it } from 'vitest';
import { readConfig } from './config.js';
import { readEncryptionKeys } from './read-encryption-keys.js';

const base64Of = (fill: number, bytes = 32): string => Buffer.alloc(bytes, fill).toString('base64');
const NEW = base64Of(0xf7);
const OLD = base64Of(0x01);

function read(inline: string | undefined, file?: string) {
  const faults: string[] = [];
  const keys = readEncryptionKeys({ inline, file }, faults);
  return { faults, keys: keys.map(({ version, key }) => [version, key.export().toString('base64')]) };
}

describe('the encryption keys of the environment', () => {
  it('are none when nothing is set', () => {
    expect(read(undefined)).toEqual({ faults: [], keys: [] });
    expect(read('', '')).toEqual({ faults: [], keys: [] });
  });

  it('are one of version 1 without a number, or several with numbers, the first for new wraps', () => {
    expect(read(NEW)).toEqual({ faults: [], keys: [[1, NEW]] });
    expect(read(`7:${NEW}`).keys).toEqual([[7, NEW]]);
    expect(read(`2147483647:${NEW} , 1:${OLD}`).keys).toEqual([
      [2_147_483_647, NEW],
      [1, OLD],
    ]);
  });

  it.each([
    ['31 bytes', base64Of(7, 31)],
    ['33 bytes', base64Of(7, 33)],
    ['no padding', NEW.slice(0, -1)],
    ['two paddings', `${NEW}=`],
    ['the alphabet of URLs', Buffer.alloc(32, 0xff).toString('base64url') + '='],
    ['a second spelling of its last digit', NEW.replace(/c=$/, 'd=')],
    ['garbage that Node would skip', `${NEW.slice(0, 20)}!${NEW.slice(20)}`],
    ['a line break inside', `${NEW.slice(0, 20)}\n${NEW.slice(20)}`],
    ['hex', Buffer.alloc(32, 7).toString('hex')],
    ['version 0', `0:${NEW}`],
    ['a version with a zero ahead', `01:${NEW}`],
    ['a version beyond an integer', `2147483648:${NEW}`],
    ['no number, but a colon', `:${NEW}`],
    ['a name for a number', `two:${NEW}`],
    ['a second key without a number', `2:${NEW},${OLD}`],
    ['a first key without a number', `${NEW},2:${OLD}`],
    ['a comma at the end', `2:${NEW},`],
    ['seventeen keys', Array.from({ length: 17 }, (_, n) => `${n + 1}:${base64Of(n)}`).join(',')],
  ])('are refused with %s, and nothing of them is repeated', (_, text) => {
    const { faults, keys } = read(text);
    expect(keys).toEqual([]);
    expect(faults).toEqual([
      expect.stringMatching(/^WAYBILL_ENCRYPTION_KEY must be .*openssl rand -base64 32/),
    ]);
    for (const piece of text.split(/[,:\n!]/).filter((part) => part.length > 8))
      expect(faults.join()).not.toContain(piece.slice(0, 8));
  });

  it('are refused when two have one version', () => {
    expect(read(`2:${NEW},2:${OLD}`).faults).toEqual([
      'WAYBILL_ENCRYPTION_KEY must give each key a version of its own, not 2, 2',
    ]);
  });

  it('may stand in a file, with a line break at its end, and not in both places', () => {
    const folder = mkdtempSync(join(tmpdir(), 'waybill-keys-'));
    const path = join(folder, 'key');
    try {
      writeFileSync(path, `2:${NEW},1:${OLD}\n`);
      expect(read(undefined, path)).toEqual({
        faults: [],
        keys: [
          [2, NEW],
          [1, OLD],
        ],
      });
      expect(read(NEW, path).faults).toEqual([
        'WAYBILL_ENCRYPTION_KEY and WAYBILL_ENCRYPTION_KEY_FILE must not both be set',
      ]);
      writeFileSync(path, 'x'.repeat(5_000));
      expect(read(undefined, path).faults).toEqual([expect.stringContaining('more than 4096 characters')]);
      writeFileSync(path, '');
      expect(read(undefined, path).faults).toEqual([
        expect.stringMatching(/^WAYBILL_ENCRYPTION_KEY_FILE must/),
      ]);
      expect(read(undefined, join(folder, 'none')).faults).toEqual([
        'WAYBILL_ENCRYPTION_KEY_FILE cannot be read (ENOENT)',
      ]);
      expect(read(undefined, folder).faults).toEqual(['WAYBILL_ENCRYPTION_KEY_FILE cannot be read (EISDIR)']);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it('are told in one list with every other fault, and show no byte of themselves in a printed config', () => {
    const env = { WAYBILL_ENCRYPTION_KEY: 'nonsense', WAYBILL_PORT: 'x' };
    expect(() => readConfig(env)).toThrow(/DATABASE_URL[\s\S]*WAYBILL_ENCRYPTION_KEY[\s\S]*WAYBILL_PORT/);
    const config = readConfig({ DATABASE_URL: 'postgresql://x', WAYBILL_ENCRYPTION_KEY: `9:${NEW}` });
    expect(config.encryptionKeys.map(({ version }) => version)).toEqual([9]);
    for (const printed of [JSON.stringify(config), inspect(config, { depth: 9, showHidden: true })]) {
      expect(printed).not.toContain(NEW.slice(0, 8));
      expect(printed.toLowerCase()).not.toContain('f7f7');
    }
  });
});
