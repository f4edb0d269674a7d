import { describe, expect, it } from 'vitest';
import { generateSecret, parseSecret, secretKey } from './secret.js';

const encode = (size: number, fill = 7): string => `whsec_${Buffer.alloc(size, fill).toString('base64')}`;

describe('secrets', () => {
  it('[row 61] makes a whsec_ secret of 24 random bytes that is accepted for storage', () => {
    const secrets = new Set(Array.from({ length: 50 }, generateSecret));
    expect(secrets.size).toBe(50);
    for (const secret of secrets) {
      expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{32}$/);
      expect(parseSecret(secret)).toMatchObject({ ok: true, key: Buffer.from(secret.slice(6), 'base64') });
    }
  });

  it.each([24, 25, 26, 63, 64])('[H25] stores a secret of %i bytes', (size) => {
    expect(parseSecret(encode(size))).toEqual({ ok: true, key: Buffer.alloc(size, 7) });
  });

  it.each([
    ['empty text', ''],
    ['the bare prefix', 'whsec_'],
    ['no prefix', Buffer.alloc(24, 7).toString('base64')],
    ['another prefix', `whsk_${Buffer.alloc(24, 7).toString('base64')}`],
    ['an upper-case prefix', encode(24).replace('whsec_', 'WHSEC_')],
    ['23 bytes', encode(23)],
    ['65 bytes', encode(65)],
    ['missing padding', encode(25).replace(/=+$/, '')],
    ['url-safe base64', encode(24, 0xff).replaceAll('/', '_')],
    ['an inner newline', `${encode(24).slice(0, 20)}\n${encode(24).slice(20)}`],
    ['a trailing newline', `${encode(24)}\n`],
    ['a leading space', ` ${encode(24)}`],
    ['garbage', `whsec_${'!'.repeat(40)}`],
    ['bits after the end', `${encode(25).slice(0, -3)}x==`],
    ['a megabyte', `whsec_${'A'.repeat(1_048_576)}`],
  ])('[H25] refuses to store a secret with %s, without repeating it', (_what, text) => {
    const result = parseSecret(text);
    expect(result).toEqual({ ok: false, reason: expect.any(String) });
    expect(JSON.stringify(result)).not.toContain(text.slice(6, 30) || 'no secret in it');
  });

  it('[row 61] takes text without the prefix as the raw key of signers and verifiers', () => {
    expect(secretKey('plain é')).toEqual({ ok: true, key: Buffer.from('plain é', 'utf8') });
  });

  it('decodes short and unpadded secrets for signers and verifiers only', () => {
    expect(secretKey('whsec_dGVzdHNlY3JldA==')).toEqual({ ok: true, key: Buffer.from('testsecret') });
    expect(secretKey('whsec_dGVzdHNlY3JldA')).toEqual({ ok: true, key: Buffer.from('testsecret') });
    expect(parseSecret('whsec_dGVzdHNlY3JldA==').ok).toBe(false);
  });

  it.each(['', 'whsec_', 'whsec_!!!!', 'whsec_a'])('refuses %j even for signers and verifiers', (text) => {
    expect(secretKey(text).ok).toBe(false);
  });
});
