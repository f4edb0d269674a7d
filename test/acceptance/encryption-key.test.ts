import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { readConfig } from '#runtime';
import { assertEncryptionKey, createKeyring } from '#secrets';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

import { examine } from '../../apps/cli/src/doctor.js';
import { bootApi, BootError, bootDispatcher, runCli, stopEverything } from '../support/apps.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { keyOf } from '../support/encryption.js';
import { rowCounts } from '../support/row-counts.js';
import { createTenantWithKey } from '../support/tenant.js';

const [ONE, TWO, THREE] = [keyOf(0x11), keyOf(0x22), keyOf(0x33)] as const;

let database: TestDatabase;
beforeEach(async () => {
  database = await createTestDatabase();
});
afterEach(async () => {
  await stopEverything();
  await database.drop();
});

/** What a start does with the key before anything else; rejects as it would be refused. */
async function start(key: string): Promise<void> {
  const { encryptionKeys } = readConfig({ DATABASE_URL: database.url, WAYBILL_ENCRYPTION_KEY: key });
  await assertEncryptionKey(database.pool, createKeyring(encryptionKeys));
}

const mismatch = (message: string) =>
  expect.objectContaining({ code: 'encryption_key_mismatch', message: expect.stringContaining(message) });

/** What the api and the dispatcher say that are refused with this key: by this code, with no piece of the key. */
async function refusals(key: string | undefined, code: string): Promise<string[]> {
  const options = {
    databaseUrl: database.url,
    env: { WAYBILL_ENCRYPTION_KEY: key, WAYBILL_LOG_LEVEL: 'trace' },
  };
  const boots = [bootApi(options), bootDispatcher(options)];
  const errors = await Promise.all(boots.map((boot) => boot.catch((reason: unknown) => reason)));
  return errors.map((error) => {
    if (!(error instanceof BootError)) throw new Error('it started');
    expect(error.code).toBe(1);
    expect(error.output).toContain(`"code":"${code}"`);
    if (key !== undefined) {
      expect(error.output).not.toContain(key.slice(0, 12));
      expect(error.output).not.toContain(Buffer.from(key, 'base64').toString('hex').slice(0, 12));
    }
    return error.output;
  });
}

async function canaries(): Promise<{ kek_version: number; sealed: string }[]> {
  const { rows } = await database.pool.query(
    `select kek_version, encode(sealed, 'hex') as sealed from waybill.encryption_canary order by 1`,
  );
  return rows;
}

describe('the api and the dispatcher', () => {
  it('do not start without a key, say how to make one, and make none by themselves', async () => {
    for (const said of await refusals(undefined, 'encryption_key_missing'))
      expect(said).toMatch(
        /does not start: WAYBILL_ENCRYPTION_KEY is not set.*`openssl rand -base64 32`.*WAYBILL_ENCRYPTION_KEY_FILE.*keep a copy/,
      );
    for (const said of await refusals(ONE.slice(0, -1), 'invalid_configuration'))
      expect(said).toContain('WAYBILL_ENCRYPTION_KEY must be the base64 of 32 bytes');
    expect(await canaries()).toEqual([]);
  });

  it('start at once with one key and leave one canary; with another key nothing starts, or changes', async () => {
    const env = { WAYBILL_ENCRYPTION_KEY: ONE };
    const options = { databaseUrl: database.url, env };
    await Promise.all([bootApi(options), bootDispatcher(options)]);
    await stopEverything();
    const before = [await canaries(), await rowCounts(database.pool)];
    expect(before[0]).toHaveLength(1);
    for (const said of await refusals(TWO, 'encryption_key_mismatch'))
      expect(said).toContain(
        'Version 1 of WAYBILL_ENCRYPTION_KEY is not the key that this database was started with. Given: version 1.',
      );
    expect([await canaries(), await rowCounts(database.pool)]).toEqual(before);
  });

  it('take the key from a file', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'waybill-key-'));
    try {
      const file = join(folder, 'key');
      writeFileSync(file, `1:${ONE}\n`, { mode: 0o600 });
      const env = { WAYBILL_ENCRYPTION_KEY: undefined, WAYBILL_ENCRYPTION_KEY_FILE: file };
      await bootApi({ databaseUrl: database.url, env });
      await start(ONE);
      expect(await canaries()).toHaveLength(1);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

describe('a database that was started with a key', () => {
  it('is refused without a version that it needs, naming it and those that are given', async () => {
    await start(ONE);
    await expect(start(`3:${THREE},2:${TWO}`)).rejects.toThrow(
      mismatch(
        'need version 1 of WAYBILL_ENCRYPTION_KEY, which is not among those given. Given: version 3, 2.',
      ),
    );
    expect(await canaries()).toHaveLength(1);
  });

  it('knows a second key from its first start on: a typing error in it is not found out too late', async () => {
    await start(ONE);
    // Behind the old one it is not in use yet.
    await start(`1:${ONE},2:${TWO}`);
    expect(await canaries()).toHaveLength(1);
    await start(`2:${TWO},1:${ONE}`);
    expect((await canaries()).map(({ kek_version: version }) => version)).toEqual([1, 2]);
    await expect(start(`2:${THREE},1:${ONE}`)).rejects.toThrow(mismatch('Version 2 of'));
    await expect(start(`1:${ONE}`)).rejects.toThrow(mismatch('need version 2 of'));
    await start(`1:${ONE},2:${TWO}`);
  });

  it('is refused when its canary is gone, or was changed, while there are data keys', async () => {
    const { tenantId } = await createTenantWithKey(database.url);
    await start(ONE);
    await database.pool.query(
      `insert into waybill.tenant_data_keys (tenant_id, version, wrapped_key, kek_version)
       values ($1, 1, decode(repeat('00', 65), 'hex'), 1)`,
      [tenantId],
    );
    await database.pool.query(
      'update waybill.encryption_canary set sealed = set_byte(sealed, 40, 255 - get_byte(sealed, 40))',
    );
    await expect(start(ONE)).rejects.toThrow(mismatch('is not the key'));
    await database.pool.query('delete from waybill.encryption_canary');
    await expect(start(ONE)).rejects.toThrow(mismatch('no canary'));
    expect(await canaries()).toEqual([]);
  });

  it('takes one of two keys that come first at once, and refuses the other', async () => {
    const starts = await Promise.allSettled([start(ONE), start(TWO), start(ONE), start(TWO)]);
    const outcomes = starts.map(({ status }) => status);
    expect(outcomes.toSorted()).toEqual(['fulfilled', 'fulfilled', 'rejected', 'rejected']);
    expect([outcomes[0], outcomes[1]]).toEqual([outcomes[2], outcomes[3]]);
    expect(await canaries()).toHaveLength(1);
  });
});

describe('the command line', () => {
  it('says by doctor when the key is missing or wrong, and changes nothing', async () => {
    const doctor = async (key: string | undefined) => {
      const env = { DATABASE_URL: database.url, WAYBILL_ENCRYPTION_KEY: key };
      return (await examine(env)).find(({ check }) => check === 'encryption');
    };
    expect(await doctor(ONE)).toMatchObject({ status: 'ok' });
    expect(await canaries()).toEqual([]);
    await start(ONE);
    const said = (text: string) => expect.stringContaining(text) as unknown;
    expect(await doctor(undefined)).toMatchObject({ status: 'fail', message: said('is not set') });
    expect(await doctor(TWO)).toMatchObject({ status: 'fail', message: said('Version 1 of') });
    expect(await doctor(`2:${TWO},1:${ONE}`)).toMatchObject({ status: 'ok', message: said('version 2') });
    expect(await canaries()).toHaveLength(1);
  });

  it('asks for the key where it rewraps, and not where it migrates or makes tenants', async () => {
    const env = { DATABASE_URL: database.url };
    const [migrated, made, rewrapped] = await Promise.all([
      runCli(['migrate'], env),
      runCli(['tenant', 'create', '--name', 'acme'], env),
      runCli(['secrets', 'rewrap', '--json'], env),
    ]);
    expect([migrated.code, made.code, rewrapped.code, rewrapped.stdout]).toEqual([0, 0, 1, '']);
    expect(JSON.parse(rewrapped.stderr)).toMatchObject({ error: { code: 'encryption_key_missing' } });
  });
});
