import { createHash } from 'node:crypto';

import { createApiKey, formatKeyText } from '#tenants';
import { beforeAll, describe, expect, it } from 'vitest';

import type { ApiClient, ApiResponse } from '../support/api-client.js';
import { ApiStage } from '../support/api-stage.js';
import { expectAnyProblem, expectProblem } from '../support/expect-problem.js';
import { expectStatus } from '../support/platform.js';
import { sendRaw } from '../support/raw-http.js';
import { rowCounts } from '../support/row-counts.js';
import { createTenantWithKey, type TestTenant } from '../support/tenant.js';
import { waitFor } from '../support/wait-for.js';

interface ShownKey {
  readonly id: string;
  readonly name: string;
  readonly scopes: readonly string[];
  readonly status: string;
  readonly version: number;
  readonly expires_at: string | null;
  readonly revoked_at: string | null;
  readonly last_used_at: string | null;
}
interface MadeKey extends ShownKey {
  readonly key: string;
  readonly replaces?: ShownKey;
}
interface Page {
  readonly data: readonly ShownKey[];
  readonly next_cursor: string | null;
}

const MEMBERS = [
  'id',
  'name',
  'scopes',
  'status',
  'version',
  'created_at',
  'expires_at',
  'revoked_at',
  'last_used_at',
];

const stage = new ApiStage();
/** A tenant and its admin, for what must not disturb the stage's own. */
let tenant: TestTenant;
let admin: ApiClient;

beforeAll(async () => {
  tenant = await createTenantWithKey(stage.database.url, { name: 'of the keys' });
  admin = stage.clientOf(stage.api, tenant.key);
});

async function make(body: object = {}, by = admin): Promise<MadeKey> {
  const scopes = ['events:read'];
  return expectStatus(await by.post<MadeKey>('/v1/keys', { name: 'made', scopes, ...body }), 201);
}

const clientOf = ({ key }: MadeKey) => stage.clientOf(stage.api, key);
const read = async ({ id }: ShownKey) => expectStatus(await admin.get<ShownKey>(`/v1/keys/${id}`), 200);

/** Lets a key's time run out without waiting for it. */
async function letExpire({ id }: ShownKey): Promise<void> {
  await stage.pool.query(`update waybill.api_keys set expires_at = now() where id = $1`, [id.slice(4)]);
}

describe('a key', () => {
  it('[row 88] is shown when it is made and never again; only its digest is stored', async () => {
    const answer = await admin.post<MadeKey>('/v1/keys', { name: 'reader', scopes: ['events:read'] });
    const made = expectStatus(answer, 201);
    expect(Object.keys(made).toSorted()).toEqual([...MEMBERS, 'key'].toSorted());
    expect(made).toMatchObject({ name: 'reader', scopes: ['events:read'], status: 'live', version: 1 });
    expect(made).toMatchObject({ expires_at: null, revoked_at: null, last_used_at: null });
    expect(answer.headers).toMatchObject({ location: `/v1/keys/${made.id}`, etag: '"1"' });
    expect(made.key).toMatch(new RegExp(`^wb_live_${made.id.slice(4)}_[0-9A-Za-z]{49}$`));
    expect((await clientOf(made).get('/v1/events')).status).toBe(200);

    const shown = [
      await admin.get(`/v1/keys/${made.id}`),
      await admin.get('/v1/keys'),
      await admin.patch(`/v1/keys/${made.id}`, { name: 'the reader' }),
    ];
    const secret = made.key.split('_').at(-1)!;
    expect(shown.map(({ status }) => status)).toEqual([200, 200, 200]);
    expect(shown.map(({ text }) => text).join()).not.toContain(secret);
    expect(stage.api.logText()).not.toContain(secret);
    const { rows } = await stage.pool.query<{ row: string; secret_digest: Buffer }>(
      'select k::text as row, k.secret_digest from waybill.api_keys k where k.id = $1',
      [made.id.slice(4)],
    );
    expect(rows[0]!.row).not.toContain(secret);
    expect(rows[0]!.secret_digest).toEqual(createHash('sha256').update(made.key).digest());
    expect(Object.keys(await read(made)).toSorted()).toEqual(MEMBERS.toSorted());
  });

  it('may do what its scopes say, and manage keys only with `keys` or `admin`', async () => {
    const reader = clientOf(await make());
    for (const refused of [
      reader.get('/v1/keys'),
      reader.post('/v1/keys', { name: 'x', scopes: ['events:read'] }),
      reader.get(`/v1/keys/key_${'0'.repeat(32)}`),
      reader.patch(`/v1/keys/key_${'0'.repeat(32)}`, { name: 'x' }),
      reader.post(`/v1/keys/key_${'0'.repeat(32)}/rotate`),
      reader.delete(`/v1/keys/key_${'0'.repeat(32)}`),
    ])
      expectProblem(await refused, 403, 'insufficient_scope');
    const keeper = clientOf(await make({ scopes: ['keys'] }));
    expect((await keeper.get('/v1/keys')).status).toBe(200);
    expectProblem(await keeper.get('/v1/events'), 403, 'insufficient_scope');
  });

  it('gives nobody a scope that it lacks itself, neither by a new key nor by rotating an old one', async () => {
    const keeper = clientOf(await make({ scopes: ['keys', 'events:read'] }));
    const before = await rowCounts(stage.pool);
    for (const scopes of [['admin'], ['events:read', 'events:write'], ['deliveries:read']])
      expectProblem(await keeper.post('/v1/keys', { name: 'x', scopes }), 403, 'insufficient_scope');
    const stronger = (await admin.get<Page>('/v1/keys')).body.data.find(({ scopes }) =>
      scopes.includes('admin'),
    )!;
    const rotated = await keeper.post(`/v1/keys/${stronger.id}/rotate`);
    expectProblem(rotated, 403, 'insufficient_scope');
    expect(rotated.text).not.toContain('wb_live_');
    expect(await rowCounts(stage.pool)).toEqual(before);
    expect((await read(stronger)).expires_at).toBeNull();
    await make({ scopes: ['keys', 'events:read'] }, keeper);
  });

  it('ends when it was to, by the clock of the database, and is refused from the next request', async () => {
    const expiresAt = new Date(Date.now() + 3_600_000).toISOString();
    const made = await make({ expires_at: expiresAt });
    expect(made).toMatchObject({ expires_at: expiresAt, status: 'live' });
    const client = clientOf(made);
    expect((await client.get('/v1/events')).status).toBe(200);
    await letExpire(made);
    expectProblem(await client.get('/v1/events'), 401, 'invalid_api_key');
    expect((await read(made)).status).toBe('expired');
    expect(await make({ expires_at: null })).toMatchObject({ expires_at: null });
  });

  it('[row 88] is refused from the request after its revocation, which may be asked for again', async () => {
    const made = await make();
    const client = clientOf(made);
    expect((await client.get('/v1/events')).status).toBe(200);
    for (let time = 0; time < 2; time += 1) {
      const answer = await admin.delete(`/v1/keys/${made.id}`);
      expect([answer.status, answer.text]).toEqual([204, '']);
      expectProblem(await client.get('/v1/events'), 401, 'invalid_api_key');
      expectProblem(await client.publish('a.b', {}), 401, 'invalid_api_key');
    }
    const shown = await read(made);
    expect(shown).toMatchObject({ status: 'revoked', revoked_at: expect.any(String) });
    expect((await admin.get<Page>('/v1/keys')).body.data).toContainEqual(shown);
  });

  it('is renamed at the version that was read, and of two at once by one', async () => {
    const made = await make();
    const path = `/v1/keys/${made.id}`;
    const renamed = await admin.patch<ShownKey>(path, { name: 'two' }, { 'if-match': '"1"' });
    expect(renamed).toMatchObject({ status: 200, headers: { etag: '"2"' }, body: { name: 'two' } });
    expectProblem(await admin.patch(path, { name: 'x' }, { 'if-match': '"1"' }), 412, 'stale_version');
    const both = await Promise.all(
      ['three', 'four'].map((name) => admin.patch(path, { name }, { 'if-match': '"2"' })),
    );
    expect(new Set(both.map(({ status }) => status))).toEqual(new Set([200, 412]));
    const all = await Promise.all(['a', 'b', 'c', 'd'].map((name) => admin.patch(path, { name })));
    expect(all.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    expect((await read(made)).version).toBe(7);
    expect((await clientOf(made).get('/v1/events')).status).toBe(200);
  });
});

describe('rotating a key', () => {
  it('makes another one with its name and scopes, and both are good until the overlap is over', async () => {
    const old = await make({ name: 'producer', scopes: ['events:read', 'events:write'] });
    const made = expectStatus(
      await admin.post<MadeKey>(`/v1/keys/${old.id}/rotate`, { overlap_seconds: 600 }),
      201,
    );
    expect(made).toMatchObject({
      name: 'producer',
      scopes: ['events:read', 'events:write'],
      expires_at: null,
    });
    expect(made.replaces).toMatchObject({ id: old.id, status: 'live' });
    const leftMs = new Date(made.replaces!.expires_at!).getTime() - Date.now();
    expect(Math.abs(leftMs - 600_000)).toBeLessThan(60_000);
    expect((await clientOf(old).get('/v1/events')).status).toBe(200);
    expect((await clientOf(made).get('/v1/events')).status).toBe(200);
    await letExpire(old);
    expectProblem(await clientOf(old).get('/v1/events'), 401, 'invalid_api_key');
    expect((await clientOf(made).get('/v1/events')).status).toBe(200);
  });

  it('takes a day if nothing is said, nothing at all for 0, and never puts an end off', async () => {
    const usual = await make();
    const day = expectStatus(await admin.post<MadeKey>(`/v1/keys/${usual.id}/rotate`), 201);
    const leftMs = new Date(day.replaces!.expires_at!).getTime() - Date.now();
    expect(Math.abs(leftMs - 86_400_000)).toBeLessThan(60_000);
    const sooner = expectStatus(
      await admin.post<MadeKey>(`/v1/keys/${usual.id}/rotate`, { overlap_seconds: 2_592_000 }),
      201,
    );
    expect(sooner.replaces!.expires_at).toBe(day.replaces!.expires_at);
    expectStatus(await admin.post(`/v1/keys/${day.id}/rotate`, { overlap_seconds: 0 }), 201);
    expectProblem(await clientOf(day).get('/v1/events'), 401, 'invalid_api_key');
  });

  it('is refused for a key that has ended, and leaves no half of it', async () => {
    const revoked = await make();
    await admin.delete(`/v1/keys/${revoked.id}`);
    const expired = await make();
    await letExpire(expired);
    const before = await rowCounts(stage.pool);
    for (const { id } of [revoked, expired])
      expectProblem(await admin.post(`/v1/keys/${id}/rotate`), 409, 'api_key_ended');
    expectProblem(await admin.post(`/v1/keys/key_${'0'.repeat(32)}/rotate`), 404, 'api_key_not_found');
    expect(await rowCounts(stage.pool)).toEqual(before);
  });

  it('may be asked for by the key itself, whose place the new one takes', async () => {
    const keeper = await make({ scopes: ['keys'] });
    const answer = await clientOf(keeper).post<MadeKey>(`/v1/keys/${keeper.id}/rotate`, {
      overlap_seconds: 0,
    });
    const made = expectStatus(answer, 201);
    expectProblem(await clientOf(keeper).get('/v1/keys'), 401, 'invalid_api_key');
    expect((await clientOf(made).get('/v1/keys')).status).toBe(200);
  });
});

describe('the last key that may manage keys', () => {
  it('cannot be revoked by itself, whatever other keys there are', async () => {
    const other = await createTenantWithKey(stage.database.url);
    const client = stage.clientOf(stage.api, other.key);
    await make({ scopes: ['events:read'] }, client);
    const expired = await make({ scopes: ['admin'] }, client);
    await letExpire(expired);
    const { data } = (await client.get<Page>('/v1/keys')).body;
    const own = data.find(({ status, scopes }) => status === 'live' && scopes.includes('admin'))!;
    expectProblem(await client.delete(`/v1/keys/${own.id}`), 409, 'last_managing_key');
    expect((await client.get('/v1/keys')).status).toBe(200);
    const keeper = await make({ scopes: ['keys'] }, client);
    expect((await client.delete(`/v1/keys/${own.id}`)).status).toBe(204);
    expectProblem(await clientOf(keeper).delete(`/v1/keys/${keeper.id}`), 409, 'last_managing_key');
  });

  it('is left by two that revoke each other at once', async () => {
    for (let round = 0; round < 5; round += 1) {
      const other = await createTenantWithKey(stage.database.url);
      const first = stage.clientOf(stage.api, other.key);
      const keeper = await make({ scopes: ['admin'] }, first);
      const { data } = (await first.get<Page>('/v1/keys')).body;
      const own = data.find(({ id }) => id !== keeper.id)!;
      const answers = await Promise.all([
        first.delete(`/v1/keys/${keeper.id}`),
        clientOf(keeper).delete(`/v1/keys/${own.id}`),
      ]);
      // The slower one may find its own key revoked.
      const statuses = answers.map(({ status }) => status);
      expect(statuses.filter((status) => status === 204)).toHaveLength(1);
      expect([401, 409]).toContain(statuses.find((status) => status !== 204));
      const { rows } = await stage.pool.query(
        'select from waybill.api_keys where tenant_id = $1 and revoked_at is null',
        [other.tenantId],
      );
      expect(rows).toHaveLength(1);
    }
  });
});

describe('the list of keys', () => {
  it('[row 90] shows all, newest first, page by page, and takes no cursor but its own', async () => {
    const other = await createTenantWithKey(stage.database.url);
    const client = stage.clientOf(stage.api, other.key);
    for (let number = 1; number < 120; number += 1)
      await createApiKey(stage.pool, other.tenantId, { name: `key ${number}`, scopes: ['keys'] });
    const seen: string[] = [];
    const sizes: number[] = [];
    let path = '/v1/keys?limit=50';
    for (;;) {
      const { data, next_cursor: cursor } = expectStatus(await client.get<Page>(path), 200);
      sizes.push(data.length);
      seen.push(...data.map(({ id }) => id));
      if (cursor === null) break;
      path = `/v1/keys?limit=50&cursor=${cursor}`;
    }
    expect(sizes).toEqual([50, 50, 20]);
    expect(new Set(seen).size).toBe(120);
    expect(seen).toEqual(seen.toSorted().toReversed());
    expectProblem(await client.get('/v1/keys?limit=0'), 422, 'invalid_limit');
    expectProblem(await client.get('/v1/keys?limit=101'), 422, 'invalid_limit');
    const foreign = Buffer.from(JSON.stringify(['endpoints', other.tenantId])).toString('base64url');
    for (const cursor of ['x', foreign, 'a'.repeat(10_000)])
      expectProblem(await client.get(`/v1/keys?cursor=${cursor}`), 422, 'invalid_cursor');
    expectProblem(await client.get('/v1/keys?status=live'), 422, 'unknown_field');
  });
});

describe('the last use of a key', () => {
  it('is noted after a moment, once a minute, and written by nobody who waits', async () => {
    const made = await make();
    expect(made.last_used_at).toBeNull();
    const written = () =>
      [...stage.proxy.statements]
        .filter(([sql]) => sql.includes('set last_used_at'))
        .reduce((sum, [, count]) => sum + count, 0);
    const before = written();
    const client = clientOf(made);
    await Promise.all(Array.from({ length: 50 }, () => client.get('/v1/events')));
    const used = await waitFor(async () => (await read(made)).last_used_at, { what: 'the use of a key' });
    expect(Math.abs(new Date(used).getTime() - Date.now())).toBeLessThan(30_000);
    const listed = (await admin.get<Page>('/v1/keys?limit=100')).body.data;
    expect(listed.find(({ id }) => id === made.id)).toMatchObject({ last_used_at: used, version: 1 });
    // Fifty requests of one key, and those that asked meanwhile: a statement or two, none of them a request's own.
    expect(written() - before).toBeLessThanOrEqual(2);
  });

  it('stops no request when it cannot be written', async () => {
    const made = await make();
    const failing = stage.proxy.on('set last_used_at', { moment: 'before', action: 'cut', times: 1 });
    const client = clientOf(made);
    expect((await client.get('/v1/events')).status).toBe(200);
    await failing.hit;
    expect((await client.get('/v1/events')).status).toBe(200);
    expect((await admin.get('/v1/keys')).status).toBe(200);
  });

  it('is passed over while somebody holds the row, and the request is not', async () => {
    const made = await make();
    const holder = await stage.pool.connect();
    await holder.query('begin');
    await holder.query('select from waybill.api_keys where id = $1 for update', [made.id.slice(4)]);
    const used = await make();
    for (const client of [clientOf(made), clientOf(used)])
      expect((await client.get('/v1/events')).status).toBe(200);
    await waitFor(async () => (await read(used)).last_used_at, { what: 'the use of the other key' });
    await holder.query('rollback');
    holder.release();
    expect((await read(made)).last_used_at).toBeNull();
  });
});

describe('what cannot be a key', () => {
  it.each<[string, object, string]>([
    ['no name', { scopes: ['keys'] }, 'validation_failed'],
    ['an empty name', { name: '', scopes: ['keys'] }, 'validation_failed'],
    ['a name of 201 characters', { name: 'x'.repeat(201), scopes: ['keys'] }, 'validation_failed'],
    ['a name of 10 kB', { name: 'x'.repeat(10_000), scopes: ['keys'] }, 'validation_failed'],
    ['NUL in its name', { name: 'a\u0000b', scopes: ['keys'] }, 'validation_failed'],
    ['a line break in its name', { name: 'a\nb', scopes: ['keys'] }, 'validation_failed'],
    ['half a character in its name', { name: 'a\ud800b', scopes: ['keys'] }, 'validation_failed'],
    ['a number as its name', { name: 1, scopes: ['keys'] }, 'validation_failed'],
    ['no scopes', { name: 'x' }, 'validation_failed'],
    ['an empty list of scopes', { name: 'x', scopes: [] }, 'validation_failed'],
    ['an unknown scope', { name: 'x', scopes: ['everything'] }, 'validation_failed'],
    ['a scope of Object', { name: 'x', scopes: ['__proto__'] }, 'validation_failed'],
    ['scopes as text', { name: 'x', scopes: 'admin' }, 'validation_failed'],
    ['33 scopes', { name: 'x', scopes: Array(33).fill('keys') }, 'validation_failed'],
    ['a number among its scopes', { name: 'x', scopes: ['keys', 1] }, 'validation_failed'],
    ['an end that is no time', { name: 'x', scopes: ['keys'], expires_at: 'soon' }, 'validation_failed'],
    [
      'an end on 30 February',
      { name: 'x', scopes: ['keys'], expires_at: '2030-02-30T00:00:00Z' },
      'validation_failed',
    ],
    [
      'an end in the past',
      { name: 'x', scopes: ['keys'], expires_at: '2020-01-01T00:00:00Z' },
      'validation_failed',
    ],
    [
      'an end after the last year',
      { name: 'x', scopes: ['keys'], expires_at: '9999-12-31T23:59:59-12:00' },
      'validation_failed',
    ],
    ['a number as its end', { name: 'x', scopes: ['keys'], expires_at: 4_102_444_800 }, 'validation_failed'],
    ['a field of another tenant', { name: 'x', scopes: ['keys'], tenant_id: 'tnt_x' }, 'unknown_field'],
    ['constructor', { name: 'x', scopes: ['keys'], constructor: 1 }, 'unknown_field'],
  ])('is refused with nothing stored: %s', async (_what, body, code) => {
    const before = await rowCounts(stage.pool);
    const made = await admin.post('/v1/keys', JSON.stringify(body));
    expectProblem(made, 422, code);
    expect(await rowCounts(stage.pool)).toEqual(before);
  });

  it('is refused when it is renamed or rotated with nonsense', async () => {
    const made = await make();
    const path = `/v1/keys/${made.id}`;
    for (const name of ['', 'a\u0000b', 'a\ud800', 'x'.repeat(10_000), null, 1])
      expectProblem(await admin.patch(path, { name }), 422, 'validation_failed');
    expectProblem(await admin.patch(path, {}), 422, 'validation_failed');
    expectProblem(await admin.patch(path, { name: 'x', scopes: ['admin'] }), 422, 'unknown_field');
    expectProblem(await admin.patch(path, '{"name":"x","__proto__":{}}'), 422, 'unknown_field');
    for (const overlap of [-1, 2_592_001, 1.5, '60', null, 1e300])
      expectProblem(
        await admin.post(`${path}/rotate`, { overlap_seconds: overlap }),
        422,
        'validation_failed',
      );
    expectProblem(await admin.post(`${path}/rotate`, { scopes: ['admin'] }), 422, 'unknown_field');
    expectProblem(await admin.post(`${path}/rotate`, '['), 400, 'invalid_json');
    for (const id of ['x', made.id.slice(4), `ep_${made.id.slice(4)}`, `${made.id}0`, '%00'])
      expectAnyProblem(await admin.get(`/v1/keys/${id}`));
    expect(await read(made)).toMatchObject({ name: 'made', version: 1, expires_at: null });
  });
});

describe('[H10] a request with a key that is', () => {
  const status = ({ status: code, text }: Pick<ApiResponse<unknown>, 'status' | 'text'>) => [
    code,
    (JSON.parse(text) as { code: string }).code,
  ];
  const ask = async (header: Buffer | string) => {
    const head = Buffer.concat([
      Buffer.from('GET /v1/keys HTTP/1.1\r\nhost: x\r\nauthorization: Bearer '),
      Buffer.from(header),
      Buffer.from('\r\n\r\n'),
    ]);
    const { answers } = await sendRaw(stage.api.url, head);
    return status(answers[0]!);
  };

  it.each<[string, Buffer | string]>([
    ['empty', ''],
    ['one byte long', 'x'],
    ['text beyond ASCII, as UTF-8', 'wb_live_é'],
    ['as long as a key and twice as many bytes', Buffer.from('é'.repeat(90), 'utf8')],
    ['text beyond ASCII, as latin-1', Buffer.from('é'.repeat(90), 'latin1')],
    ['8 kB long', 'w'.repeat(8_000)],
    ['right but for its case', formatKeyText('0190a5c2-7e3a-7cde-8f01-23456789abcd').toUpperCase()],
    ['of another env', formatKeyText('0190a5c2-7e3a-7cde-8f01-23456789abcd', 'test')],
    ['nobody’s', formatKeyText('0190a5c2-7e3a-7cde-8f01-23456789abcd')],
  ])('%s is answered 401', async (_what, header) => {
    expect(await ask(header)).toEqual([401, 'invalid_api_key']);
  });

  it('1 MB long is answered 431, and the next request as ever', async () => {
    expect(await ask('w'.repeat(1_048_576))).toEqual([431, 'headers_too_large']);
    expect((await admin.get('/v1/keys')).status).toBe(200);
  });
});

it('a key of another env is none here, though its digest is stored', async () => {
  const test = await stage.bootApi({ WAYBILL_ENV: 'test' });
  expectProblem(await stage.clientOf(test, tenant.key).get('/v1/keys'), 401, 'invalid_api_key');
  const ofTest = await createApiKey(stage.pool, tenant.tenantId, { name: 'test', scopes: ['keys'] }, 'test');
  const client = stage.clientOf(test, ofTest.key);
  const made = await make({ scopes: ['keys'] }, client);
  expect(made.key).toMatch(/^wb_test_/);
  expectProblem(await clientOf(made).get('/v1/keys'), 401, 'invalid_api_key');
  expect((await stage.clientOf(test, made.key).get('/v1/keys')).status).toBe(200);
});
