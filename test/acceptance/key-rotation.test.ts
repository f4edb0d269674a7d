import { readConfig } from '#runtime';
import { createKeyring, rewrapDataKeys, sealClearSecrets } from '#secrets';
import { describe, expect, it } from 'vitest';

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
    const withKeys = (key: string) => ({ ...BRISK, WAYBILL_ENCRYPTION_KEY: key });
    const cli = (key: string, ...args: string[]) =>
      runCli(args, { DATABASE_URL: platform.databaseUrl, WAYBILL_ENCRYPTION_KEY: key });
    // Step 1: all know the new key behind the old one.
    await platform.bootApi(withKeys(`1:${ONE},2:${TWO}`));
    const dispatcher = await platform.bootDispatcher(withKeys(`1:${ONE},2:${TWO}`));
    const receiver = await platform.startReceiver();
    const endpoint = await platform.addEndpoint(receiver.url);
    const first = await platform.publish({ n: 0 });
    await platform.untilState(first.deliveries[0]!.id, 'succeeded');
    // Step 2 has begun: one dispatcher has it in front already.
    await platform.bootDispatcher(withKeys(`2:${TWO},1:${ONE}`));
    const before = await cli(`2:${TWO},1:${ONE}`, 'doctor');
    expect(before.stdout).toMatch(
      /^warn encryption: .*1 data key\(s\) still need version 1\. Run: waybill secrets rewrap/m,
    );
    // Step 3, amid deliveries.
    const running = { on: true };
    const publishing = (async () => {
      const events = [];
      while (running.on) events.push(await platform.publish({ n: events.length }));
      return events;
    })();
    const rewrapped = await cli(`2:${TWO},1:${ONE}`, 'secrets', 'rewrap');
    running.on = false;
    const events = await publishing;
    expect(rewrapped.stdout).toMatch(/^1 data key\(s\) re-wrapped with version 2, 0 left\.$/m);
    expect(rewrapped.code).toBe(0);
    await drain(platform.pool);
    const { rows } = await platform.pool.query(
      'select state, attempt_count, count(*)::integer from waybill.deliveries group by state, attempt_count',
    );
    expect(rows).toEqual([{ state: 'succeeded', attempt_count: 1, count: events.length + 1 }]);
    for (const request of receiver.requests) verifySignature(request, endpoint.secret);
    // The first dispatcher reads what is wrapped anew, with keys that it never had to be told of.
    const { secret } = (
      await platform.client.post<{ secret: string }>(`/v1/endpoints/${endpoint.id}/secrets`)
    ).body;
    await platform.publish({ n: 'rotated' });
    const rotated = await receiver.waitFor((all) => all.some(({ body }) => body.includes('rotated')));
    verifySignature(rotated.at(-1)!, secret);
    expect(dispatcher.logText()).not.toContain('secret.unreadable');
    // Step 4: the old one is not needed any more, and alone it is refused.
    const after = await cli(`2:${TWO}`, 'doctor');
    expect(after.stdout).toMatch(/^ok +encryption: secrets are sealed under version 2$/m);
    const last = await platform.bootDispatcher(withKeys(`2:${TWO}`));
    await last.stop();
    await expect(platform.bootDispatcher(withKeys(`1:${ONE}`))).rejects.toThrow('need version 2');
    expect((await cli(`1:${ONE}`, 'secrets', 'rewrap')).stderr).toContain('need version 2');
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
