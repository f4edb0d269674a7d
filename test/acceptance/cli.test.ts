import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

import { examine } from '../../apps/cli/src/doctor.js';
import { migrate } from '#runtime';
import { createClient } from '../support/api-client.js';
import { bootApi, bootDispatcher, runCli, stopEverything } from '../support/apps.js';
import { createEmptyDatabase, type TestDatabase } from '../support/database.js';
import { TEST_ENCRYPTION_KEY } from '../support/encryption.js';
import { BRISK, type ShownEndpoint, type ShownEvent } from '../support/platform.js';
import { startReceiver } from '../support/receiver.js';

const PLANT_OWED = `
  insert into waybill.delivery_queue (tenant_id, event_id, endpoint_id, delivery_id, due_at, expires_at, payload_bytes)
  values (gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), now(), now() + interval '1 day', 1)`;

let database: TestDatabase;
beforeEach(async () => {
  database = await createEmptyDatabase();
});
afterEach(async () => {
  await stopEverything();
  await database.drop();
});

function waybill(...args: string[]) {
  return runCli(args, { DATABASE_URL: database.url, WAYBILL_ENCRYPTION_KEY: TEST_ENCRYPTION_KEY });
}

async function json<Result>(...args: string[]): Promise<Result> {
  const { code, stdout, stderr } = await waybill(...args, '--json');
  expect([code, stderr]).toEqual([0, '']);
  const result: Result = JSON.parse(stdout);
  return result;
}

describe('the command line', () => {
  it('says what is wrong with its use as JSON too, and dials nothing that is no database', async () => {
    for (const [args, message] of [
      [['key', 'create'], "required option '--tenant <id>' not specified"],
      [['nope'], "unknown command 'nope'"],
    ] as const) {
      const { code, stdout, stderr } = await waybill(...args, '--json');
      expect([code, stdout, JSON.parse(stderr)]).toEqual([
        1,
        '',
        { error: { code: 'invalid_usage', message } },
      ]);
    }
    expect(await examine({ DATABASE_URL: 'nonsense' })).toMatchObject([{ check: 'config', status: 'fail' }]);
  });

  it('[row 95] [row 97] leads from an empty database to a delivered event, with HTTP for the rest', async () => {
    const early = await waybill('doctor');
    expect(early.code).toBe(1);
    expect(early.stdout).toMatch(/^fail schema: .*waybill migrate/m);

    const { applied } = await json<{ applied: string[] }>('migrate');
    expect(applied.length).toBeGreaterThan(0);
    const again = await waybill('migrate');
    expect([again.code, again.stdout]).toEqual([0, 'Nothing to apply.\n']);

    const tenant = await json<{ id: string }>('tenant', 'create', '--name', 'acme');
    expect(tenant.id).toMatch(/^tnt_[0-9a-f]{32}$/);
    const made = await json<{ id: string; key: string }>(
      'key',
      'create',
      '--tenant',
      tenant.id,
      '--name',
      'ops',
      '--scopes',
      'events:write,endpoints:write',
    );
    const { rows } = await database.pool.query('select to_jsonb(k)::text as row from waybill.api_keys k');
    expect(rows).toHaveLength(1);
    expect(JSON.stringify(rows)).not.toContain(made.key.split('_').at(-1));

    const [api] = await Promise.all([
      bootApi({ databaseUrl: database.url }),
      bootDispatcher({ databaseUrl: database.url, env: BRISK }),
    ]);
    const receiver = await startReceiver();
    const client = createClient(api.url, made.key);
    const endpoint = await client.post<ShownEndpoint>('/v1/endpoints', { url: receiver.url });
    expect(endpoint.status).toBe(201);
    const event = await client.publish<ShownEvent>('order.created', { order: 1 });
    expect(event.status).toBe(201);
    const [request] = await receiver.waitFor(1);
    expect(request!.deliveryId).toBe(event.body.deliveries[0]!.id);
    // The key reaches as far as its scopes.
    expect((await client.get('/v1/deliveries')).status).toBe(403);

    const shown = await json<{ data: { id: string; revoked_at: string | null }[] }>(
      'key',
      'list',
      '--tenant',
      tenant.id,
    );
    expect(shown.data).toMatchObject([{ id: made.id, revoked_at: null }]);
    expect(JSON.stringify(shown)).not.toContain(made.key.split('_').at(-1));
    expect(await json('key', 'revoke', made.id, '--tenant', tenant.id)).toEqual({
      id: made.id,
      revoked: true,
    });
    expect((await client.publish('order.created', {})).status).toBe(401);
    expect((await waybill('key', 'revoke', made.id, '--tenant', tenant.id)).code).toBe(1);
    expect(await json('tenant', 'list')).toMatchObject({ data: [{ id: tenant.id, name: 'acme' }] });

    const late = await waybill('doctor');
    expect([late.code, late.stderr]).toEqual([0, '']);
    expect(late.stdout).not.toMatch(/^(warn|fail)/m);
    expect(late.stdout).toMatch(/^ok +schema:/m);
    expect(late.stdout).toMatch(/^ok +dispatchers: 1 alive/m);
    expect(late.stdout).toMatch(/^ok +endpoints: 1 endpoint\(s\), 0 circuit\(s\) open, 0 disabled/m);

    // The lease is made shorter than what an endpoint was allowed before.
    await database.pool.query('update waybill.endpoints set attempt_timeout_ms = 58001');
    const endpoints = async () => (await examine({ DATABASE_URL: database.url })).at(-1);
    expect(await endpoints()).toEqual({
      check: 'endpoints',
      status: 'warn',
      message: expect.stringContaining('1 with a timeout over the 58000 ms'),
    });
    await database.pool.query(
      `update waybill.endpoints set attempt_timeout_ms = null, status = 'disabled', disabled_reason = 'gone'`,
    );
    expect(await endpoints()).toEqual({
      check: 'endpoints',
      status: 'warn',
      message: '1 endpoint(s), 0 circuit(s) open, 1 disabled by Waybill (1 gone, 0 failing)',
    });
    await receiver.close();
  });

  it('suspends, resumes and deletes tenants, and rotates and revokes keys, without an api', async () => {
    await waybill('migrate');
    const { id: tenant } = await json<{ id: string }>('tenant', 'create', '--name', 'acme');
    const key = (...args: string[]) => json<Record<string, unknown>>('key', ...args, '--tenant', tenant);
    const ends = new Date(Date.now() + 3_600_000).toISOString();
    const made = await key('create', '--name', 'ops', '--scopes', 'keys,events:read', '--expires', ends);
    expect(made).toMatchObject({ key: expect.stringMatching(/^wb_live_/), expires_at: ends });
    const rotated = await key('rotate', String(made['id']), '--overlap', '0');
    expect(rotated).toMatchObject({
      key: expect.stringMatching(/^wb_live_/),
      replaces: { id: made['id'], status: 'expired' },
    });
    const { data } = await key('list');
    expect(data).toMatchObject([
      { id: rotated['id'], status: 'live', scopes: ['keys', 'events:read'], last_used_at: null },
      { id: made['id'], status: 'expired' },
    ]);
    // The operator may take a tenant's last one, too.
    expect(await key('revoke', String(rotated['id']))).toMatchObject({ revoked: true });
    const asText = await waybill('key', 'list', '--tenant', tenant);
    expect(asText.stdout).toMatch(/revoked {2}keys,events:read {2}ops\n.* {2}expired/);

    const change = (name: string) => json<{ status: string }>('tenant', name, tenant);
    for (const [name, status] of [
      ['suspend', 'suspended'],
      ['suspend', 'suspended'],
      ['resume', 'active'],
    ] as const)
      expect(await change(name)).toMatchObject({ id: tenant, status });
    expect(await change('delete')).toEqual({ id: tenant, status: 'deleting' });
    expect(await json('tenant', 'list')).toEqual({ data: [] });
    expect(await json('tenant', 'list', '--deleting')).toMatchObject({
      data: [{ id: tenant, status: 'deleting' }],
    });
    for (const args of [
      ['tenant', 'delete', tenant],
      ['tenant', 'resume', tenant],
      ['key', 'list', '--tenant', tenant],
      ['key', 'create', '--tenant', tenant, '--name', 'x', '--scopes', 'admin'],
      ['key', 'rotate', String(rotated['id']), '--tenant', tenant],
    ]) {
      const { code, stderr } = await waybill(...args, '--json');
      expect([code, JSON.parse(stderr)]).toMatchObject([1, { error: { code: 'tenant_not_found' } }]);
    }
  });

  it('says what is wrong on standard error and exits with 1, as text or as JSON', async () => {
    await waybill('migrate');
    const tenant = await json<{ id: string }>('tenant', 'create', '--name', 'acme');
    const refused = [
      ['key', 'create', '--tenant', tenant.id, '--name', 'x', '--scopes', 'everything'],
      ['key', 'create', '--tenant', 'acme', '--name', 'x', '--scopes', 'admin'],
      ['key', 'create', '--tenant', `tnt_${'0'.repeat(32)}`, '--name', 'x', '--scopes', 'admin'],
      ['tenant', 'create', '--name', ''],
      ['tenant', 'create'],
      ['frobnicate'],
    ];
    const said: string[] = [];
    for (const args of refused) {
      const { code, stdout, stderr } = await waybill(...args);
      expect([args, code, stdout]).toEqual([args, 1, '']);
      expect(stderr).not.toMatch(/\n\s+at |select |insert /);
      expect(stderr.trim()).not.toBe('');
      said.push(stderr);
    }
    const { code, stderr } = await waybill('tenant', 'create', '--name', 'x'.repeat(201), '--json');
    expect(code).toBe(1);
    expect(JSON.parse(stderr)).toMatchObject({ error: { code: 'validation_failed' } });
    expect(said[0]).toContain('unknown scope everything, not one of events:read, events:write,');
    const home = mkdtempSync(join(tmpdir(), 'waybill-home-'));
    try {
      const without = await runCli(['migrate'], { WAYBILL_HOME: home });
      expect([without.code, without.stderr]).toEqual([1, expect.stringContaining('DATABASE_URL')]);
      // As `npm start` leaves it there; the port is one that nobody listens on.
      mkdirSync(join(home, 'postgres'));
      writeFileSync(join(home, 'postgres', 'postmaster.pid'), ['1', home, '1', '1', ''].join('\n'));
      writeFileSync(join(home, 'postgres.password'), 'secret\n');
      const embedded = await runCli(['doctor'], { WAYBILL_HOME: home });
      expect(embedded.stdout).toMatch(/^ok +config: .*\nfail database: .*127\.0\.0\.1:1/);
      expect(embedded.stderr).toContain(
        `the embedded database of \`npm start\` in ${join(home, 'postgres')}`,
      );
      expect(embedded.stderr + embedded.stdout).not.toContain('secret');
    } finally {
      rmSync(home, { recursive: true, force: true });
    }
    const { rows } = await database.pool.query('select from waybill.api_keys');
    expect(rows).toEqual([]);
  });

  it('misses a dispatcher, the more so when something is owed', async () => {
    await migrate(database.url);
    const dispatchers = async () =>
      (await examine({ DATABASE_URL: database.url })).find(({ check }) => check === 'dispatchers');
    expect(await dispatchers()).toMatchObject({
      status: 'warn',
      message: expect.stringMatching(/^0 alive.*nothing is owed$/),
    });
    await database.pool.query(PLANT_OWED);
    expect(await dispatchers()).toMatchObject({
      status: 'fail',
      message: expect.stringMatching(/not delivered$/),
    });
  });
});
