import { randomBytes } from 'node:crypto';

import { CODE_REVISION } from '#migrations';
import { migrateDown } from '#runtime';
import { readDataKey, sealClearSecrets } from '#secrets';
import { describe, expect, it } from 'vitest';

import { bootDispatcher, runCli } from '../support/apps.js';
import { createTestDatabase } from '../support/database.js';
import { TEST_ENCRYPTION_KEY, testKeyring } from '../support/encryption.js';
import { startPgProxy } from '../support/pg-proxy.js';
import { BRISK } from '../support/platform.js';
import { openScene } from '../support/scene.js';
import { openStage } from '../support/stage.js';
import { plantClear, readStoredSecrets } from '../support/stored-secrets.js';
import { createTenantWithKey } from '../support/tenant.js';
import { verifySignature } from '../support/verify-signature.js';

const STORE_SEALED = 'set secret = null, sealed_secret';

describe('secrets that were stored in clear', () => {
  it('are all sealed when a dispatcher has started, and sign as before', async ({ onTestFinished }) => {
    const stage = await openStage(onTestFinished);
    const others = [
      await createTenantWithKey(stage.databaseUrl),
      await createTenantWithKey(stage.databaseUrl),
    ];
    const tenantIds = [stage.tenantId, ...others.map(({ tenantId }) => tenantId)];
    const planted = await plantClear(stage.pool, tenantIds, 150);
    const scene = await openScene(stage, onTestFinished);
    const dispatcher = await stage.boot();
    const { clear, secrets } = await readStoredSecrets(stage.pool);
    expect(clear).toBe(0);
    expect([...planted].filter(([id, secret]) => secrets.get(id) !== secret)).toEqual([]);
    expect(dispatcher.logs()).toContainEqual(
      expect.objectContaining({ event: 'secrets.sealed', count: 451 }),
    );
    await scene.publish(1);
    const [request] = await scene.receiver.waitFor(1);
    verifySignature(request!, scene.secret);
    // There is nothing left to do for the next start.
    const next = await stage.boot();
    expect(next.logs()).not.toContainEqual(expect.objectContaining({ event: 'secrets.sealed' }));
  });

  it.each(['before', 'after'] as const)(
    'are lost by no crash: cut off %s a batch is written, some are sealed, the others clear, and the next start goes on',
    async (moment) => {
      const { databaseUrl, pool, proxy, close } = await openProxied();
      try {
        const { tenantId } = await createTenantWithKey(databaseUrl);
        const planted = await plantClear(pool, [tenantId], 450);
        // The second of three batches is the one that does not come through.
        const first = proxy.on(STORE_SEALED, { moment, action: 'release' });
        void first.hit.then(() => proxy.on(STORE_SEALED, { moment, action: 'cut' }));
        await expect(bootDispatcher({ databaseUrl: proxy.url, env: BRISK })).rejects.toThrow(
          'ended before it was ready',
        );
        expect(first.hits).toBe(1);
        const broken = await readStoredSecrets(pool);
        expect([broken.clear, broken.secrets]).toEqual([250, planted]);
        const app = await bootDispatcher({ databaseUrl: proxy.url, env: BRISK });
        await app.kill();
        const whole = await readStoredSecrets(pool);
        expect([whole.clear, whole.secrets]).toEqual([0, planted]);
      } finally {
        await close();
      }
    },
  );

  it('are sealed once by two that start at the same time', async ({ onTestFinished }) => {
    const database = await createTestDatabase();
    onTestFinished(() => database.drop());
    const { tenantId } = await createTenantWithKey(database.url);
    const planted = await plantClear(database.pool, [tenantId], 500);
    const keyring = testKeyring();
    const sealed = await Promise.all([
      sealClearSecrets(database.pool, keyring),
      sealClearSecrets(database.pool, keyring),
    ]);
    expect(sealed[0] + sealed[1]).toBe(500);
    expect(await readStoredSecrets(database.pool)).toEqual({ clear: 0, secrets: planted });
  });

  it('are told of by doctor, and sealed by secrets rewrap, too', async ({ onTestFinished }) => {
    const database = await createTestDatabase();
    onTestFinished(() => database.drop());
    const { tenantId } = await createTenantWithKey(database.url);
    await plantClear(database.pool, [tenantId], 3);
    const env = { DATABASE_URL: database.url, WAYBILL_ENCRYPTION_KEY: TEST_ENCRYPTION_KEY };
    const doctor = await runCli(['doctor'], env);
    expect(doctor.stdout).toMatch(/^warn encryption: .*3 secret\(s\) stand in clear/m);
    const rewrapped = await runCli(['secrets', 'rewrap', '--json'], env);
    expect(JSON.parse(rewrapped.stdout)).toEqual({ version: 1, rewrapped: 0, left: 0, sealed: 3 });
    expect((await readStoredSecrets(database.pool)).clear).toBe(0);
  });

  it('are clear again for nobody: the migration is not taken back over sealed ones', async ({
    onTestFinished,
  }) => {
    const database = await createTestDatabase();
    onTestFinished(() => database.drop());
    const { tenantId } = await createTenantWithKey(database.url);
    const planted = await plantClear(database.pool, [tenantId], 2);
    await sealClearSecrets(database.pool, testKeyring());
    // Those that came after it go first.
    for (let later = CODE_REVISION; later > 4; later -= 1) await migrateDown(database.url);
    await expect(migrateDown(database.url)).rejects.toThrow(/sealed endpoint secrets/);
    expect((await readStoredSecrets(database.pool)).secrets).toEqual(planted);
    await database.pool.query('delete from waybill.endpoint_secrets');
    await migrateDown(database.url);
  });
});

async function openProxied() {
  const database = await createTestDatabase();
  const proxy = await startPgProxy(database.url);
  return {
    databaseUrl: database.url,
    pool: database.pool,
    proxy,
    async close() {
      await proxy.close();
      await database.drop();
    },
  };
}

it('no byte of a data key stands in the database in clear', async ({ onTestFinished }) => {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  const { tenantId } = await createTenantWithKey(database.url);
  const secret = `whsec_${randomBytes(24).toString('base64')}`;
  await plantClear(database.pool, [tenantId], 1);
  await database.pool.query('update waybill.endpoint_secrets set secret = $1', [secret]);
  await sealClearSecrets(database.pool, testKeyring());
  const dataKey = (await readDataKey(database.pool, testKeyring(), tenantId, 1)).export();
  const { rows } = await database.pool.query<{ row: string }>(
    `select k::text as row from waybill.tenant_data_keys k union all select s::text from waybill.endpoint_secrets s`,
  );
  const stored = rows.map(({ row }) => row).join();
  expect(rows).toHaveLength(2);
  for (const hidden of [dataKey, Buffer.from(secret), Buffer.from(secret.slice(6), 'base64')])
    expect(stored).not.toContain(hidden.toString('hex').slice(0, 16));
});
