import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { type EmbeddedPostgres, migrate, startEmbeddedPostgres } from '#runtime';
import type { Pool } from 'pg';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';

import { bootApi, BootError, bootDispatcher, runCli, stopEverything } from '../support/apps.js';
import { createTestPool } from '../support/database.js';
import { startReceiver } from '../support/receiver.js';
import { createTenantWithKey } from '../support/tenant.js';

/**
 * A server that has never seen Waybill, so that it has none of our roles. (The embedded one's superuser is named like the
 * owner; here it is renamed.)
 */
let server: EmbeddedPostgres;
let admin: Pool;
let folder: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'waybill-roles-'));
  // Under root the server runs as another account, which has to pass through here.
  chmodSync(folder, 0o755);
  server = await startEmbeddedPostgres({ dataDir: join(folder, 'postgres'), durable: false });
  const bootstrap = createTestPool(server.url);
  await bootstrap.query(`create role boss superuser login password '${PASSWORD}'`);
  await bootstrap.end();
  admin = createTestPool(urlOf('boss', 'postgres'));
  await admin.query('alter role waybill_owner rename to bootstrap');
});
afterAll(async () => {
  await stopEverything();
  await admin.end();
  await server.stop();
  rmSync(folder, { recursive: true, force: true });
});

const PASSWORD = 'of-a-test';

function urlOf(login: string, database: string): string {
  const url = new URL(server.url);
  return Object.assign(url, { username: login, password: PASSWORD, pathname: `/${database}` }).href;
}

async function createLogin(name: string, attributes = ''): Promise<void> {
  await admin.query(`create role ${name} login noinherit password '${PASSWORD}' ${attributes}`);
}

async function refusalOf(boot: Promise<unknown>): Promise<string> {
  const error: unknown = await boot.catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(BootError);
  return (error as BootError).message;
}

it('refuses to start where the server lacks the roles, and says what makes them', async () => {
  await createLogin('stranger');
  for (const boot of [bootApi, bootDispatcher]) {
    const refusal = await refusalOf(boot({ databaseUrl: urlOf('stranger', 'postgres') }));
    expect(refusal).toMatch(/no role waybill_\w+\. Run: waybill migrate/);
  }
});

it('makes the roles once, though three databases of a server are migrated at the same time', async () => {
  await admin.query(`create role maker login createrole password '${PASSWORD}'`);
  const names = ['first', 'second', 'third'];
  for (const name of names) await admin.query(`create database ${name} owner maker`);
  const all = await Promise.all(names.map((name) => migrate(urlOf('maker', name))));
  for (const { applied } of all) expect(applied.length).toBeGreaterThan(2);
  const { rows } = await admin.query(`select rolname from pg_roles where rolname ~ '^waybill_' order by 1`);
  expect(rows.map(({ rolname }: { rolname: string }) => rolname)).toEqual([
    'waybill_app',
    'waybill_dispatcher',
    'waybill_intake',
    'waybill_operator',
    'waybill_owner',
    'waybill_producer',
  ]);
});

it('tells a login that may not take the roles what an administrator has to run, and then migrates', async () => {
  await admin.query(`create role humble login password '${PASSWORD}'`);
  await admin.query('create database humble owner humble');
  const refused = await runCli(['migrate'], { DATABASE_URL: urlOf('humble', 'humble') });
  expect(refused.code).toBe(1);
  const advice = refused.stderr.match(/^ +(?:create role|grant) .*;$/gm);
  // The roles are there already.
  expect(advice).toHaveLength(1);
  await admin.query(advice![0]);
  expect(await runCli(['migrate'], { DATABASE_URL: urlOf('humble', 'humble') })).toMatchObject({ code: 0 });
});

it('delivers with a login for each process that may do no more than its process has to', async () => {
  await createLogin('of_api');
  await createLogin('of_dispatcher');
  await admin.query('grant waybill_app, waybill_intake, waybill_operator to of_api');
  await admin.query('grant waybill_dispatcher to of_dispatcher');
  const receiver = await startReceiver();
  onTestFinished(() => receiver.close());
  const tenant = await createTenantWithKey(urlOf('maker', 'first'));
  const api = await bootApi({ databaseUrl: urlOf('of_api', 'first') });
  await bootDispatcher({ databaseUrl: urlOf('of_dispatcher', 'first') });
  const client = tenant.clientOf(api.url);
  onTestFinished(() => client.close());
  expect(await client.post('/v1/endpoints', { url: receiver.url })).toMatchObject({ status: 201 });
  expect(await client.publish('order.created', { order: 1 })).toMatchObject({ status: 201 });
  await receiver.waitFor(1);
  // As itself, without a role, such a login reaches nothing of ours.
  const bare = createTestPool(urlOf('of_api', 'first'));
  onTestFinished(() => bare.end());
  await expect(bare.query('select from waybill.api_keys')).rejects.toThrow('permission denied');
});

it.each(['waybill_app', 'waybill_intake', 'waybill_operator'])(
  'does not start an api whose login may not act as %s, and names it',
  async (lacking) => {
    const name = `without_${lacking}`;
    await createLogin(name);
    const others = ['waybill_app', 'waybill_intake', 'waybill_operator'].filter((role) => role !== lacking);
    await admin.query(`grant ${others.join(', ')} to ${name}`);
    const refusal = await refusalOf(bootApi({ databaseUrl: urlOf(name, 'first') }));
    expect(refusal).toContain(`may not act as ${lacking}`);
  },
);
