import { randomUUID } from 'node:crypto';

import { beforeAll, describe, expect, it } from 'vitest';

import type { ApiClient } from '../support/api-client.js';
import { ApiStage } from '../support/api-stage.js';
import { expectProblem } from '../support/expect-problem.js';
import { rowCounts } from '../support/row-counts.js';
import { createTenantWithKey } from '../support/tenant.js';

interface Shown {
  readonly id: string;
  readonly uid: string;
  readonly name: string;
  readonly metadata: Record<string, string> | null;
  readonly version: number;
}

interface Page {
  readonly data: readonly Shown[];
  readonly next_cursor: string | null;
}

const NOBODY = `con_${'0'.repeat(32)}`;
const stage = new ApiStage();
/** Of another tenant. */
let stranger: ApiClient;

beforeAll(async () => {
  const { key } = await createTenantWithKey(stage.database.url, { name: 'B' });
  stranger = stage.clientOf(stage.api, key);
});

async function make(uid: string, fields: object = {}, client = stage.client): Promise<Shown> {
  const { status, body } = await client.post<Shown>('/v1/consumers', { uid, ...fields });
  expect(status).toBe(201);
  return body;
}

describe('[row 69] a consumer', () => {
  it('is made once under its uid, and given again as it stands', async () => {
    const first = await stage.client.post<Shown>('/v1/consumers', {
      uid: 'acme',
      name: 'Acme',
      metadata: { plan: 'gold' },
    });
    expect(first.status).toBe(201);
    expect(first.headers).toMatchObject({ location: `/v1/consumers/${first.body.id}`, etag: '"1"' });
    expect(first.body).toMatchObject({ uid: 'acme', name: 'Acme', metadata: { plan: 'gold' }, version: 1 });
    expect(first.body.id).toMatch(/^con_[0-9a-f]{32}$/);
    for (const fields of [{}, { name: 'Another' }, { metadata: { plan: 'lead' } }, { metadata: null }]) {
      const again = await stage.client.post('/v1/consumers', { uid: 'acme', ...fields });
      expect(again).toMatchObject({ status: 200, body: first.body, headers: { etag: '"1"' } });
    }
  });

  it('is one, of six asked for at once', async () => {
    for (const uid of Array.from({ length: 5 }, () => `raced ${randomUUID()}`)) {
      const answers = await Promise.all(
        Array.from({ length: 6 }, () => stage.client.post<Shown>('/v1/consumers', { uid })),
      );
      expect(answers.map(({ status }) => status).toSorted((one, other) => one - other)).toEqual([
        200, 200, 200, 200, 200, 201,
      ]);
      expect(new Set(answers.map(({ body }) => body.id)).size).toBe(1);
    }
  });

  it('is another one for each of two tenants that choose the same uid', async () => {
    const own = await make('shared', { name: 'of A' });
    const foreign = await make('shared', { name: 'of B' }, stranger);
    expect(own.id).not.toBe(foreign.id);
    expect((await stage.client.get<Shown>('/v1/consumers/shared')).body).toEqual(own);
    expect((await stranger.get<Shown>('/v1/consumers/shared')).body).toEqual(foreign);
    expect(await stage.client.delete('/v1/consumers/shared')).toMatchObject({ status: 204 });
    expect((await stranger.get<Shown>('/v1/consumers/shared')).body).toEqual(foreign);
  });

  it('is read by its uid, percent-encoded, and by its id', async () => {
    for (const uid of [
      'a',
      'A',
      'a/b',
      '50%',
      '\u00e9',
      'e\u0301',
      '漢字 ?#&+',
      'x'.repeat(255),
      '😀',
      '__proto__',
    ]) {
      const made = await make(uid);
      for (const path of [encodeURIComponent(uid), made.id]) {
        const read = await stage.client.get(`/v1/consumers/${path}`);
        expect(read).toMatchObject({ status: 200, body: made, headers: { etag: '"1"' } });
      }
      const found = await stage.client.get<Page>(`/v1/consumers?uid=${encodeURIComponent(uid)}`);
      expect(found.body).toMatchObject({ data: [made], next_cursor: null });
    }
  });

  it('that is unknown is 404 by its uid and by its id, whatever is asked of it', async () => {
    for (const id of ['nobody', NOBODY]) {
      for (const answer of [
        await stage.client.get(`/v1/consumers/${id}`),
        await stage.client.patch(`/v1/consumers/${id}`, { name: 'x' }),
        await stage.client.delete(`/v1/consumers/${id}`),
        await stage.client.publish('a.b', {}, { consumer: id }),
        await stage.client.post('/v1/endpoints', { url: stage.receiver.url, consumer: id }),
      ])
        expectProblem(answer, 404, 'consumer_not_found');
      for (const list of ['events', 'deliveries', 'endpoints']) {
        expect(await stage.client.get(`/v1/${list}?consumer=${id}`)).toMatchObject({
          status: 200,
          body: { data: [], next_cursor: null },
        });
      }
    }
  });
});

describe('what a consumer carries', () => {
  it.each<[string, object, string]>([
    ['a name that is none', { name: 5 }, 'name'],
    ['a name of null', { name: null }, 'name'],
    ['a name of 201 characters', { name: 'x'.repeat(201) }, 'name'],
    ['a name with a NUL', { name: 'a\0' }, 'name'],
    ['metadata that is a list', { metadata: [] }, 'metadata'],
    ['metadata that is text', { metadata: 'x' }, 'metadata'],
    ['metadata with a number', { metadata: { a: 1 } }, 'metadata'],
    ['metadata with a NUL', { metadata: { a: '\0' } }, 'metadata'],
    ['metadata with a lone surrogate', { metadata: { '\udc00': 'a' } }, 'metadata'],
    ['metadata with a name of 65 characters', { metadata: { ['x'.repeat(65)]: 'a' } }, 'metadata'],
    ['metadata with a value of 513 characters', { metadata: { a: 'x'.repeat(513) } }, 'metadata'],
    [
      'metadata of 17 entries',
      { metadata: Object.fromEntries(Array.from({ length: 17 }, (_, n) => [`k${n}`, ''])) },
      'metadata',
    ],
  ])('is refused when it is %s', async (_what, fields, field) => {
    const { id } = (await stage.client.post<Shown>('/v1/consumers', { uid: 'refusals' })).body;
    const before = await rowCounts(stage.pool);
    for (const answer of [
      await stage.client.post('/v1/consumers', { uid: 'never made', ...fields }),
      await stage.client.patch(`/v1/consumers/${id}`, fields),
    ])
      expect(expectProblem(answer, 422, 'validation_failed').details?.[0]?.field).toBe(field);
    expect(await rowCounts(stage.pool)).toEqual(before);
  });

  it('may be as much as events may', async () => {
    const metadata = Object.fromEntries(
      Array.from({ length: 16 }, (_, n) => [`${n}`.padEnd(64, 'k'), 'ü'.repeat(512)]),
    );
    const made = await make('full', { name: 'n'.repeat(200), metadata });
    expect(made).toMatchObject({ metadata, name: 'n'.repeat(200) });
    const odd = await stage.client.patch<Shown>(
      `/v1/consumers/${made.id}`,
      '{"metadata":{"__proto__":"a","constructor":"b"}}',
    );
    expect(odd.text).toContain('"metadata":{"__proto__":"a","constructor":"b"}');
  });

  it('changes under its version: of two that saw the same one, one wins', async () => {
    const { id } = await make('changing', { name: 'one' });
    const path = `/v1/consumers/${id}`;
    const answers = await Promise.all(
      ['two', 'three'].map((name) => stage.client.patch<Shown>(path, { name }, { 'if-match': '"1"' })),
    );
    expect(answers.map(({ status }) => status).toSorted((one, other) => one - other)).toEqual([200, 412]);
    expectProblem(
      answers.find(({ status }) => status === 412)!,
      412,
      'stale_version',
    );
    const won = answers.find(({ status }) => status === 200)!;
    expect(won).toMatchObject({ headers: { etag: '"2"' }, body: { version: 2 } });
    // Nothing new is no new version.
    const same = await stage.client.patch(path, { name: won.body.name });
    expect(same).toMatchObject({ status: 200, headers: { etag: '"2"' }, body: won.body });
    const cleared = await stage.client.patch(path, { name: '', metadata: { a: 'b' } });
    expect(cleared.body).toMatchObject({ name: '', metadata: { a: 'b' }, version: 3, uid: 'changing' });
    expect((await stage.client.patch(path, { metadata: null })).body).toMatchObject({ metadata: null });
    expectProblem(await stage.client.patch(path, { uid: 'renamed' }), 422, 'unknown_field');
    expectProblem(await stage.client.delete(path, undefined, { 'if-match': '"1"' }), 412, 'stale_version');
    expect(await stage.client.delete(path, undefined, { 'if-match': '"4"' })).toMatchObject({ status: 204 });
    expectProblem(await stage.client.delete(path), 404, 'consumer_not_found');
  });
});

it('consumers are for keys with their scope alone', async () => {
  const scopes = ['events:write', 'endpoints:write', 'deliveries:read', 'events:read'] as const;
  const { key } = await createTenantWithKey(stage.database.url, { scopes });
  const without = stage.clientOf(stage.api, key);
  for (const refused of [
    without.post('/v1/consumers', { uid: 'a' }),
    without.get('/v1/consumers'),
    without.get('/v1/consumers/a'),
    without.patch('/v1/consumers/a', {}),
    without.delete('/v1/consumers/a'),
  ])
    expectProblem(await refused, 403, 'insufficient_scope');
  const only = await createTenantWithKey(stage.database.url, { scopes: ['consumers'] });
  const client = stage.clientOf(stage.api, only.key);
  expect((await client.post('/v1/consumers', { uid: 'a' })).status).toBe(201);
  expectProblem(await client.get('/v1/events'), 403, 'insufficient_scope');
});

it('[row 90] the list of consumers goes in pages, newest first', async () => {
  const { key } = await createTenantWithKey(stage.database.url);
  const client = stage.clientOf(stage.api, key);
  const made = [];
  for (let number = 0; number < 7; number += 1) made.push(await make(`listed ${number}`, {}, client));
  const pages: Shown[][] = [];
  for (let cursor: string | null = ''; cursor !== null;) {
    const query: string = cursor === '' ? '' : `&cursor=${cursor}`;
    const { body } = await client.get<Page>(`/v1/consumers?limit=3${query}`);
    pages.push([...body.data]);
    cursor = body.next_cursor;
  }
  expect(pages.map(({ length }) => length)).toEqual([3, 3, 1]);
  expect(new Set(pages.flat().map(({ id }) => id))).toEqual(new Set(made.map(({ id }) => id)));
  const ids = pages.flat().map(({ id }) => id);
  expect(ids).toEqual(ids.toSorted().toReversed());
  const { next_cursor: foreign } = (await client.get<Page>('/v1/consumers?limit=3')).body;
  expectProblem(await stranger.get(`/v1/consumers?cursor=${foreign}`), 422, 'invalid_cursor');
  expectProblem(await client.get('/v1/consumers?name=x'), 422, 'unknown_field');
});
