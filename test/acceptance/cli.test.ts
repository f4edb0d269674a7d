import { afterEach, beforeEach, describe, expect, it } from 'vitest';

import { examine } from '../../apps/cli/src/doctor.js';
import { createClient } from '../support/api-client.js';
import { bootApi, bootDispatcher, runCli, stopEverything } from '../support/apps.js';
import { createEmptyDatabase, type TestDatabase } from '../support/database.js';
import { BRISK, type ShownEndpoint, type ShownEvent } from '../support/platform.js';
import { startReceiver } from '../support/receiver.js';

let database: TestDatabase;
beforeEach(async () => {
  database = await createEmptyDatabase();
});
afterEach(async () => {
  await stopEverything();
  await database.drop();
});

function waybill(...args: string[]) {
  return runCli(args, { DATABASE_URL: database.url });
}

async function json<Result>(...args: string[]): Promise<Result> {
  const { code, stdout, stderr } = await waybill(...args, '--json');
  expect([code, stderr]).toEqual([0, '']);
  const result: Result = JSON.parse(stdout);
  return result;
}

describe('the command line', () => {
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
    expect(late.stdout).toMatch(/^ok +endpoints: 1 endpoint\(s\), 0 circuit\(s\) open, 0 disabled/m);

    // The lease is made shorter than what an endpoint was allowed before.
    await database.pool.query('update waybill.endpoints set attempt_timeout_ms = 58001');
    const findings = await examine({ DATABASE_URL: database.url });
    expect(findings.at(-1)).toEqual({
      check: 'endpoints',
      status: 'warn',
      message: expect.stringContaining('1 with a timeout over the 58000 ms'),
    });
    await receiver.close();
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
    for (const args of refused) {
      const { code, stdout, stderr } = await waybill(...args);
      expect([args, code, stdout]).toEqual([args, 1, '']);
      expect(stderr).not.toMatch(/\n\s+at |select |insert /);
      expect(stderr.trim()).not.toBe('');
    }
    const { code, stderr } = await waybill('tenant', 'create', '--name', 'x'.repeat(201), '--json');
    expect(code).toBe(1);
    expect(JSON.parse(stderr)).toMatchObject({ error: { code: 'validation_failed' } });
    const without = await runCli(['migrate'], {});
    expect([without.code, without.stderr]).toEqual([1, expect.stringContaining('DATABASE_URL')]);
    const { rows } = await database.pool.query('select from waybill.api_keys');
    expect(rows).toEqual([]);
  });
});
