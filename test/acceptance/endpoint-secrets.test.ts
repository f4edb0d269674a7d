import { beforeAll, describe, expect, it } from 'vitest';

import type { ApiClient, ApiResponse } from '../support/api-client.js';
import { ApiStage } from '../support/api-stage.js';
import { expectProblem } from '../support/expect-problem.js';
import { tenantRows } from '../support/row-counts.js';
import { createTenantWithKey } from '../support/tenant.js';

interface ShownSecret {
  readonly id: string;
  readonly created_at: string;
  readonly expires_at: string | null;
  readonly revoked_at: string | null;
}

interface Page {
  readonly data: readonly ShownSecret[];
  readonly next_cursor: string | null;
}

type Made = ShownSecret & { readonly secret: string };

const GIVEN = `whsec_${Buffer.alloc(32, 9).toString('base64')}`;
const DAY_MS = 86_400_000;

const stage = new ApiStage();
let client: ApiClient;
beforeAll(() => {
  ({ client } = stage);
});

/** A new endpoint's secrets route, and the version that its answers carry. */
async function openSecrets(): Promise<{ path: string; endpointPath: string }> {
  const { id } = await stage.addEndpoint();
  return { path: `/v1/endpoints/${id}/secrets`, endpointPath: `/v1/endpoints/${id}` };
}

const rotate = (path: string, body?: object, headers?: Record<string, string>) =>
  client.post<Made>(path, body, headers);

async function list(path: string): Promise<readonly ShownSecret[]> {
  const answer = await client.get<Page>(path);
  expect(answer.status).toBe(200);
  return answer.body.data;
}

/** How far a time lies ahead of the database's clock; the whole of it is loopback, so seconds are plenty. */
async function aheadMs(time: string): Promise<number> {
  const { rows } = await stage.pool.query<{ now: Date }>('select now()');
  return Date.parse(time) - rows[0]!.now.getTime();
}

function expectAhead(ms: number, expected: number): void {
  expect(ms).toBeGreaterThan(expected - 30_000);
  expect(ms).toBeLessThanOrEqual(expected);
}

describe('a new secret of an endpoint', () => {
  it('is made without a body, is shown once, and lets the older one end after a day', async () => {
    const { path, endpointPath } = await openSecrets();
    const [first] = await list(path);
    expect(first).toEqual({
      id: expect.stringMatching(/^sec_[0-9a-f]{32}$/),
      created_at: expect.stringMatching(/Z$/),
      expires_at: null,
      revoked_at: null,
    });
    const made = await rotate(path);
    expect(made).toMatchObject({ status: 201, headers: { etag: '"2"' } });
    expect(made.body).toEqual({
      id: expect.stringMatching(/^sec_[0-9a-f]{32}$/),
      created_at: expect.any(String),
      expires_at: null,
      revoked_at: null,
      secret: expect.stringMatching(/^whsec_[A-Za-z0-9+/]{32}$/),
    });
    const listed = await client.get<Page>(path);
    expect(listed.headers.etag).toBe('"2"');
    expect(listed.body.data.map(({ id }) => id)).toEqual([made.body.id, first!.id]);
    expect(listed.text).not.toContain('whsec_');
    expectAhead(await aheadMs(listed.body.data[1]!.expires_at!), DAY_MS);
    const endpoint = await client.get<{ version: number; revision: number }>(endpointPath);
    expect(endpoint.body).toMatchObject({ version: 2, revision: 1 });
    expect(endpoint.headers.etag).toBe('"2"');
  });

  it('may be the caller’s own, with an overlap of its own; what was to end sooner still does', async () => {
    const { path } = await openSecrets();
    const second = await rotate(path, { secret: GIVEN, overlap_seconds: 60 });
    expect(second.body.secret).toBe(GIVEN);
    const third = await rotate(path, { overlap_seconds: 604_800 });
    expect(third.status).toBe(201);
    const [newest, middle, oldest] = await list(path);
    expect(newest).toMatchObject({ id: third.body.id, expires_at: null });
    expect(middle!.id).toBe(second.body.id);
    expectAhead(await aheadMs(middle!.expires_at!), 7 * DAY_MS);
    expectAhead(await aheadMs(oldest!.expires_at!), 60_000);
    expect((await rotate(path, { overlap_seconds: 0 })).status).toBe(201);
    const ended = (await list(path)).slice(1);
    for (const { expires_at } of ended) expect(await aheadMs(expires_at!)).toBeLessThanOrEqual(0);
  });

  it('is the fifth live one at most, unless the others end at once', async () => {
    const { path } = await openSecrets();
    for (let live = 2; live <= 5; live += 1) expect((await rotate(path)).status).toBe(201);
    const before = await tenantRows(stage.pool, stage.tenant.tenantId);
    expectProblem(await rotate(path), 409, 'too_many_secrets');
    expect(await tenantRows(stage.pool, stage.tenant.tenantId)).toEqual(before);
    const [, second] = await list(path);
    expect((await client.delete(`${path}/${second!.id}`)).status).toBe(204);
    expect((await rotate(path)).status).toBe(201);
    expectProblem(await rotate(path), 409, 'too_many_secrets');
    expect((await rotate(path, { overlap_seconds: 0 })).status).toBe(201);
    expect((await rotate(path)).status).toBe(201);
    expect(await list(path)).toHaveLength(8);
  });

  it.each([
    ['a secret that is too short', { secret: 'whsec_dGVzdHNlY3JldA==' }, 'validation_failed', 'secret'],
    ['a secret that is no text', { secret: 5 }, 'validation_failed', 'secret'],
    ['a secret of null', { secret: null }, 'validation_failed', 'secret'],
    ['a negative overlap', { overlap_seconds: -1 }, 'validation_failed', 'overlap_seconds'],
    ['more than seven days', { overlap_seconds: 604_801 }, 'validation_failed', 'overlap_seconds'],
    ['half a second', { overlap_seconds: 0.5 }, 'validation_failed', 'overlap_seconds'],
    ['an overlap as text', { overlap_seconds: '60' }, 'validation_failed', 'overlap_seconds'],
    ['an unknown field', { expires_at: null }, 'unknown_field', 'expires_at'],
  ])('is not made of %s', async (_, body, code, field) => {
    const { path } = await openSecrets();
    const problem = expectProblem(await rotate(path, body), 422, code);
    expect(problem.details).toMatchObject([{ field }]);
    expect(await list(path)).toMatchObject([{ expires_at: null }]);
  });

  it('is not made of what is no JSON object', async () => {
    const { path } = await openSecrets();
    expectProblem(await client.post(path, '[]'), 422, 'validation_failed');
    expectProblem(await client.post(path, '{"secret":'), 400, 'invalid_json');
    expectProblem(
      await client.post(path, '{"overlap_seconds":1,"overlap_seconds":2}'),
      400,
      'duplicate_field',
    );
    expectProblem(
      await client.post(path, '{}', { 'content-type': 'text/plain' }),
      415,
      'unsupported_content_type',
    );
    expect(await list(path)).toHaveLength(1);
    expect((await client.post(path, '{}')).status).toBe(201);
  });
});

describe('a secret that is revoked', () => {
  it('is gone at once and stays listed; revoking it again changes nothing', async () => {
    const { path } = await openSecrets();
    const [first] = await list(path);
    await rotate(path);
    const revoked = await client.delete(`${path}/${first!.id}`);
    expect([revoked.status, revoked.headers.etag]).toEqual([204, '"3"']);
    const [, shown] = await list(path);
    expect(shown!.revoked_at).not.toBeNull();
    const again = await client.delete(`${path}/${first!.id}`);
    expect([again.status, again.headers.etag]).toEqual([204, '"3"']);
    expect((await list(path))[1]).toEqual(shown);
  });

  it('is never the one that stays, alone or in an overlap', async () => {
    const { path } = await openSecrets();
    const [first] = await list(path);
    expectProblem(await client.delete(`${path}/${first!.id}`), 409, 'last_secret');
    const { body: second } = await rotate(path);
    expectProblem(await client.delete(`${path}/${second.id}`), 409, 'last_secret');
    expect((await list(path)).map(({ revoked_at }) => revoked_at)).toEqual([null, null]);
  });
});

describe('the routes of secrets', () => {
  it('know no other tenant’s endpoint, no deleted one, no other endpoint’s secret, and no wrong id', async () => {
    const { path, endpointPath } = await openSecrets();
    const [first] = await list(path);
    const other = await openSecrets();
    await rotate(other.path);
    const [, foreign] = await list(other.path);
    const tenant = await createTenantWithKey(stage.database.url, { name: 'B' });
    const stranger = stage.clientOf(stage.api, tenant.key);
    const before = await tenantRows(stage.pool, stage.tenant.tenantId);
    for (const target of [path, path.replace(/ep_.{32}/, `ep_${'0'.repeat(32)}`)]) {
      expectProblem(await stranger.get(target), 404, 'endpoint_not_found');
      expectProblem(await stranger.post(target), 404, 'endpoint_not_found');
      expectProblem(await stranger.delete(`${target}/${first!.id}`), 404, 'endpoint_not_found');
    }
    expectProblem(await client.delete(`${path}/${foreign!.id}`), 404, 'secret_not_found');
    expectProblem(await client.delete(`${path}/sec_${'0'.repeat(32)}`), 404, 'secret_not_found');
    expectProblem(await client.delete(`${path}/${first!.id.replace('sec', 'ep')}`), 400, 'invalid_id');
    expectProblem(await client.get('/v1/endpoints/nope/secrets'), 400, 'invalid_id');
    expectProblem(await client.get(`${path}/${first!.id}`), 405, 'method_not_allowed');
    expect(await tenantRows(stage.pool, stage.tenant.tenantId)).toEqual(before);
    await client.delete(endpointPath);
    expectProblem(await client.get(path), 404, 'endpoint_not_found');
    expectProblem(await client.post(path), 404, 'endpoint_not_found');
  });

  it('ask for the scopes of endpoints', async () => {
    const { path } = await openSecrets();
    const [first] = await list(path);
    const url = stage.database.url;
    const reading = await createTenantWithKey(url, { name: 'R', scopes: ['endpoints:read'] });
    const writing = await createTenantWithKey(url, { name: 'W', scopes: ['endpoints:write'] });
    const reader = stage.clientOf(stage.api, reading.key);
    const writer = stage.clientOf(stage.api, writing.key);
    expectProblem(await reader.post(path), 403, 'insufficient_scope');
    expectProblem(await reader.delete(`${path}/${first!.id}`), 403, 'insufficient_scope');
    expectProblem(await writer.get(path), 403, 'insufficient_scope');
    expectProblem(await reader.get(path), 404, 'endpoint_not_found');
    expectProblem(await writer.post(path), 404, 'endpoint_not_found');
  });

  it('page through the list, and take no cursor of another', async () => {
    const { path } = await openSecrets();
    for (let made = 0; made < 4; made += 1) await rotate(path, { overlap_seconds: 0 });
    const all = (await list(path)).map(({ id }) => id);
    expect(all).toHaveLength(5);
    const seen: string[] = [];
    let cursor: string | null = '';
    while (cursor !== null) {
      const page: ApiResponse<Page> = await client.get<Page>(
        `${path}?limit=2${cursor === '' ? '' : `&cursor=${cursor}`}`,
      );
      seen.push(...page.body.data.map(({ id }) => id));
      cursor = page.body.next_cursor;
    }
    expect(seen).toEqual(all);
    const endpoints = await client.get<Page>('/v1/endpoints?limit=1');
    expectProblem(await client.get(`${path}?cursor=${endpoints.body.next_cursor}`), 422, 'invalid_cursor');
    expectProblem(await client.get(`${path}?state=live`), 422, 'unknown_field');
  });
});

describe('changes of secrets at the same time', () => {
  it('are all made when nobody expects a version, and leave one secret that stays', async () => {
    const { path, endpointPath } = await openSecrets();
    const answers = await Promise.all(Array.from({ length: 4 }, () => rotate(path)));
    expect(answers.map(({ status }) => status)).toEqual([201, 201, 201, 201]);
    const secrets = await list(path);
    expect(secrets.filter(({ expires_at }) => expires_at === null)).toHaveLength(1);
    expect(new Set(answers.map(({ headers }) => headers.etag)).size).toBe(4);
    const { rows } = await stage.pool.query(
      'select version, secrets_version from waybill.endpoints where id = $1',
      [endpointPath.slice('/v1/endpoints/ep_'.length)],
    );
    expect(rows).toEqual([{ version: 5, secrets_version: 5 }]);
  });

  it('are made once when all expect the version they have seen', async () => {
    const { path } = await openSecrets();
    const seen = { 'if-match': '"1"' };
    const answers = await Promise.all(Array.from({ length: 4 }, () => rotate(path, {}, seen)));
    expect(answers.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([201, 412, 412, 412]);
    for (const answer of answers) if (answer.status === 412) expectProblem(answer, 412, 'stale_version');
    const secrets = await list(path);
    expect(secrets).toHaveLength(2);
    const stale = await client.delete(`${path}/${secrets[1]!.id}`, undefined, seen);
    expectProblem(stale, 412, 'stale_version');
    const fresh = { 'if-match': '"2"' };
    expect((await client.delete(`${path}/${secrets[1]!.id}`, undefined, fresh)).status).toBe(204);
  });

  it('with the first secrets of a new tenant share one data key', async () => {
    const tenant = await createTenantWithKey(stage.database.url, { name: 'new' });
    const newcomer = stage.clientOf(stage.api, tenant.key);
    const made = await Promise.all(
      Array.from({ length: 4 }, () => newcomer.post('/v1/endpoints', { url: stage.receiver.url })),
    );
    expect(made.map(({ status }) => status)).toEqual([201, 201, 201, 201]);
    const { rows } = await stage.pool.query(
      'select version from waybill.tenant_data_keys where tenant_id = $1',
      [tenant.tenantId],
    );
    expect(rows).toEqual([{ version: 1 }]);
  });
});
