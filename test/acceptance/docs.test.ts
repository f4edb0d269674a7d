import { describe, expect, it } from 'vitest';

import { ApiStage } from '../support/api-stage.js';
import { type ApiClient, createClient } from '../support/api-client.js';
import { faultsOf } from '../support/check-described.js';
import { DOCUMENT_TEXT, OPERATIONS } from '../support/openapi-document.js';

const stage = new ApiStage();
const anybody = (): ApiClient => createClient(stage.api.url, null);

describe('the reference', () => {
  it('is served as it is checked in, to anybody, and may be kept', async () => {
    const answer = await anybody().get('/openapi.json');
    expect([answer.status, answer.text === DOCUMENT_TEXT]).toEqual([200, true]);
    expect(answer.headers['cache-control']).toBe('public, max-age=300');
    const unchanged = await anybody().get('/openapi.json', {
      'if-none-match': String(answer.headers['etag']),
    });
    expect([unchanged.status, unchanged.text]).toEqual([304, '']);
    expect((await anybody().get('/openapi.json', { 'if-none-match': '"other"' })).status).toBe(200);
    expect(faultsOf('GET', '/openapi.json', answer)).toEqual([]);
  });

  it('is a page that loads nothing and runs nothing, with an anchor and a command for each operation', async () => {
    const { headers, text } = await anybody().get('/docs');
    const policy = String(headers['content-security-policy']);
    expect(policy).toMatch(
      /^default-src 'none'; style-src 'sha256-[A-Za-z0-9+/]{43}='; base-uri 'none'; form-action 'none'; frame-ancestors 'none'$/,
    );
    expect(headers['set-cookie']).toBeUndefined();
    expect(text).not.toMatch(
      /<(?:script|link|img|iframe|object|embed|form|base)\b|\bon[a-z]+=|style=|@import|url\(/i,
    );
    const links = [...text.matchAll(/(?:href|src)="([^"]*)"/g)].map(([, link]) => link!);
    const anchors = new Set([...text.matchAll(/\bid="([^"]*)"/g)].map(([, anchor]) => `#${anchor}`));
    expect(links.filter((link) => link !== 'openapi.json' && !anchors.has(link))).toEqual([]);
    for (const { id, path } of OPERATIONS) {
      expect(anchors).toContain(`#${id}`);
      expect(text).toContain(`$WAYBILL_URL${path.split('{')[0]}`);
    }
  });
});
