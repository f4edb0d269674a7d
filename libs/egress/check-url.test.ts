import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { checkUrl } from './check-url.js';
import { parseEgressPolicy } from './parse-egress-policy.js';

const closed = parseEgressPolicy({ allow: [], deny: [], allowHttp: true });
const rows = readFileSync(new URL('../../test/data/ssrf-urls.tsv', import.meta.url), 'utf8')
  .split('\n')
  .filter((line) => line !== '' && !line.startsWith('#') && !line.startsWith('url\t'))
  .map((line) => {
    const [text = '', verdict = '', why = ''] = line.split('\t');
    const url: unknown = JSON.parse(`"${text}"`);
    return { url: String(url), verdict, why };
  });
const rejected = rows.filter((row) => row.verdict === 'REJECT');
const accepted = rows.filter((row) => row.verdict !== 'REJECT');

describe('the table of hostile URLs', () => {
  it('[H13] has at least 180 rows, each with a known verdict', () => {
    expect(rows.length).toBeGreaterThanOrEqual(180);
    expect(rows.every((row) => ['REJECT', 'BLOCK', 'ALLOW'].includes(row.verdict))).toBe(true);
    expect(rejected.length).toBeGreaterThan(100);
  });

  it.each(rejected)('[H13] [row 65] refuses $url ($why)', ({ url }) => {
    expect(checkUrl(url, closed)).toMatchObject({
      ok: false,
      reason: expect.any(String),
      detail: expect.any(String),
    });
  });

  it.each(accepted)('[H13] may store $url ($why)', ({ url }) => {
    expect(checkUrl(url, closed)).toMatchObject({ ok: true });
  });
});

describe('checkUrl', () => {
  it.each([
    ['HTTPS://EXAMPLE.com:443/', 'https://example.com/'],
    ['https://example.com./', 'https://example.com/'],
    ['https://example.com', 'https://example.com/'],
    ['https://münchen.de/hook', 'https://xn--mnchen-3ya.de/hook'],
    ['http://1.1.1/', 'http://1.1.0.1/'],
    ['https://example.com:8443/a/../b?x=%0d', 'https://example.com:8443/b?x=%0d'],
  ])('stores %s as %s', (raw, url) => {
    expect(checkUrl(raw, closed)).toEqual({ ok: true, url });
    expect(checkUrl(url, closed)).toEqual({ ok: true, url });
  });

  it.each([
    ['x'.repeat(2_049), 'too_long'],
    [`https://example.com/${'é'.repeat(1_000)}`, 'too_long'],
    ['https://example.com/\u3000', 'bad_characters'],
    ['https://example.com/\ud800', 'bad_characters'],
    ['ftp://example.com/', 'bad_scheme'],
    ['', 'bad_scheme'],
    ['https:/example.com', 'bad_syntax'],
    ['https://user@example.com', 'has_credentials'],
    ['https://example.com/#', 'has_fragment'],
    ['https://ex%61mple.com/', 'bad_host'],
    ['https://intranet/', 'forbidden_host'],
    ['https://10.0.0.1/', 'forbidden_address'],
  ])('names the reason for %j: %s', (raw, reason) => {
    expect(checkUrl(raw, closed)).toMatchObject({ ok: false, reason });
  });

  it.each([0, 22, 25, 6000, 6667, 10_080])('[row 40] refuses port %i', (port) => {
    expect(checkUrl(`https://example.com:${port}/`, closed)).toMatchObject({ ok: false, reason: 'bad_port' });
  });

  it('refuses http unless the operator allows it', () => {
    const strict = parseEgressPolicy({ allow: ['127.0.0.0/8'], deny: [], allowHttp: false });
    expect(checkUrl('http://example.com/', strict)).toMatchObject({ ok: false, reason: 'http_not_allowed' });
    expect(checkUrl('http://127.0.0.1/', strict)).toMatchObject({ ok: false, reason: 'http_not_allowed' });
    expect(checkUrl('https://example.com/', strict).ok).toBe(true);
  });

  it('lets the operator name inner hosts and addresses, and deny public ones', () => {
    const policy = parseEgressPolicy({
      allow: ['receiver', 'localhost:8080', '*.svc.cluster.local', '10.1.0.0/16', '[::1]:9000'],
      deny: ['*.evil.example', 'bad.example.com', '11.0.0.0/8'],
      allowHttp: true,
    });
    const pass = (url: string) => checkUrl(url, policy).ok;
    expect(pass('http://receiver:3000/')).toBe(true);
    expect(pass('http://RECEIVER./')).toBe(true);
    expect(pass('http://localhost:8080/')).toBe(true);
    expect(pass('http://localhost:8081/')).toBe(false);
    expect(pass('http://a.b.svc.cluster.local/')).toBe(true);
    expect(pass('http://svc.cluster.local/')).toBe(false);
    expect(pass('http://10.1.2.3/')).toBe(true);
    expect(pass('http://10.2.2.3/')).toBe(false);
    expect(pass('http://[::1]:9000/')).toBe(true);
    expect(pass('http://[::1]:9001/')).toBe(false);
    expect(pass('https://x.evil.example/')).toBe(false);
    expect(pass('https://bad.example.com/')).toBe(false);
    expect(pass('https://good.example.com/')).toBe(true);
    expect(pass('https://11.0.0.1/')).toBe(false);
  });
});
