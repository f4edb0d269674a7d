import { readConfig } from '#runtime';
import { assertEncryptionKey, createKeyring, rewrapDataKeys, sealClearSecrets } from '#secrets';
import { describe, expect, it } from 'vitest';

import { examine } from '../../apps/cli/src/doctor.js';
import { runCli } from '../support/apps.js';
import { createTestDatabase } from '../support/database.js';
import { keyOf, TEST_ENCRYPTION_KEY, testKeyring } from '../support/encryption.js';
import { BRISK, openPlatform } from '../support/platform.js';
import { plantClear, readStoredSecrets } from '../support/stored-secrets.js';
import { createTenantWithKey } from '../support/tenant.js';
import { verifySignature } from '../support/verify-signature.js';
import { drain } from '../support/wait-for.js';

const [ONE, TWO] = [keyOf(0x11), keyOf(0x22)] as const;

const keyringOf = (key: string) =>
  createKeyring(readConfig({ DATABASE_URL: 'postgresql://', WAYBILL_ENCRYPTION_KEY: key }).encryptionKeys);

describe('the encryption key', () => {
  it('is changed while everything runs, and no delivery is the worse for it', async ({ onTestFinished }) => {
    const platform = await openPlatform();
    onTestFinished(() => platform.close());
    const { pool, databaseUrl } = platform;
    const withKeys = (key: string) => ({ ...BRISK, WAYBILL_ENCRYPTION_KEY: key });
    const doctor = async (key: string) =>
      (await examine({ DATABASE_URL: databaseUrl, WAYBILL_ENCRYPTION_KEY: key })).find(
        ({ check }) => check === 'encryption',
      );
    // Step 1: all know the new key behind the old one.
    await platform.bootApi(withKeys(`1:${ONE},2:${TWO}`));
    const dispatcher = await platform.bootDispatcher(withKeys(`1:${ONE},2:${TWO}`));
    const receiver = await platform.startReceiver();
    const endpoint = await platform.addEndpoint(receiver.url);
    await platform.publish({ n: 'first' });
    await receiver.waitFor(1);
    // Step 2 has begun: one dispatcher has it in front already.
    await platform.bootDispatcher(withKeys(`2:${TWO},1:${ONE}`));
    expect(await doctor(`2:${TWO},1:${ONE}`)).toEqual({
      check: 'encryption',
      status: 'warn',
      message: expect.stringMatching(/; 1 data key\(s\) still need version 1\. Run: waybill secrets rewrap$/),
    });
    // Step 3, amid deliveries.
    const rewrapping = runCli(['secrets', 'rewrap'], {
      DATABASE_URL: databaseUrl,
      WAYBILL_ENCRYPTION_KEY: `2:${TWO},1:${ONE}`,
    });
    let rewrapped: Awaited<typeof rewrapping> | null = null;
    void rewrapping.then((output) => (rewrapped = output));
    let published = 1;
    for (; rewrapped === null; published += 1) await platform.publish({ published });
    expect(await rewrapping).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^1 data key\(s\) re-wrapped with version 2, 0 left\.$/m),
    });
    await drain(pool);
    const { rows } = await pool.query(
      'select state, attempt_count, count(*)::integer from waybill.deliveries group by state, attempt_count',
    );
    expect(rows).toEqual([{ state: 'succeeded', attempt_count: 1, count: published }]);
    for (const request of receiver.requests) verifySignature(request, endpoint.secret);
    // The first dispatcher reads what is wrapped anew by the key that it was given in step 1.
    const { body } = await platform.client.post<{ secret: string }>(`/v1/endpoints/${endpoint.id}/secrets`);
    await platform.publish({ n: 'rotated' });
    const requests = await receiver.waitFor((all) => all.some((one) => one.body.includes('rotated')));
    verifySignature(requests.at(-1)!, body.secret);
    expect(dispatcher.logText()).not.toContain('secret.unreadable');
    // Step 4: the old one is not needed any more, and alone it is refused.
    expect(await doctor(`2:${TWO}`)).toMatchObject({
      status: 'ok',
      message: 'secrets are sealed under version 2',
    });
    await assertEncryptionKey(pool, keyringOf(`2:${TWO}`));
    await expect(assertEncryptionKey(pool, keyringOf(`1:${ONE}`))).rejects.toThrow('need version 2');
  });

  it('is changed in small steps: cut short, the next run goes on with what is left', async ({
    onTestFinished,
  }) => {
    const database = await createTestDatabase();
    onTestFinished(() => database.drop());
    const { pool } = database;
    const tenants = await Promise.all(Array.from({ length: 5 }, () => createTenantWithKey(database.url)));
    const planted = await plantClear(
      pool,
      tenants.map(({ tenantId }) => tenantId),
      1,
    );
    await sealClearSecrets(pool, testKeyring());
    const keyring = keyringOf(`2:${TWO},1:${TEST_ENCRYPTION_KEY}`);
    const left: number[] = [];
    const stopAfter = (batches: number) => ({
      batchSize: 2,
      onProgress: (progress: { left: number }) => {
        left.push(progress.left);
        if (left.length === batches) throw new Error('killed');
      },
    });
    await expect(rewrapDataKeys(pool, keyring, stopAfter(1))).rejects.toThrow('killed');
    expect(left).toEqual([3]);
    // A data key of either version opens at every moment.
    expect(await readStoredSecrets(pool, keyring)).toEqual({ clear: 0, secrets: planted });
    expect(await rewrapDataKeys(pool, keyring, stopAfter(9))).toEqual({ rewrapped: 3, left: 0 });
    expect(left).toEqual([3, 1, 0]);
    expect(await rewrapDataKeys(pool, keyring, stopAfter(9))).toEqual({ rewrapped: 0, left: 0 });
    expect(await readStoredSecrets(pool, keyringOf(`2:${TWO}`))).toEqual({ clear: 0, secrets: planted });
  });
});
