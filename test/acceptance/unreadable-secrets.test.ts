import { describe, expect, it } from 'vitest';

import { openPlatform } from '../support/platform.js';
import { openStage } from '../support/stage.js';
import { createTenantWithKey } from '../support/tenant.js';
import { verifySignature } from '../support/verify-signature.js';
import { waitFor } from '../support/wait-for.js';

describe('a secret that does not open', () => {
  const SPOIL = {
    'was changed by one bit':
      'update waybill.endpoint_secrets set sealed_secret = set_bit(sealed_secret, 300, 1 - get_bit(sealed_secret, 300)) where endpoint_id = $1',
    'was copied from another endpoint of its tenant':
      'update waybill.endpoint_secrets set sealed_secret = (select sealed_secret from waybill.endpoint_secrets where endpoint_id <> $1 limit 1) where endpoint_id = $1',
    'is of a data key that is gone':
      'update waybill.endpoint_secrets set sealed_secret = set_byte(sealed_secret, 4, 9) where endpoint_id = $1',
  };

  it.each(Object.entries(SPOIL))(
    'because it %s holds its own endpoint, costs no attempt, and sends nothing unsigned',
    async (_, spoil) => {
      const cleanUps: (() => Promise<void>)[] = [];
      try {
        const stage = await openStage((cleanUp) => void cleanUps.unshift(cleanUp));
        const { endpointId } = await stage.addEndpoint(`${stage.receiver.url}/spoiled`);
        const { rows } = await stage.pool.query<{ sealed_secret: Buffer }>(
          'select sealed_secret from waybill.endpoint_secrets where endpoint_id = $1',
          [endpointId],
        );
        expect((await stage.pool.query(spoil, [endpointId])).rowCount).toBe(1);
        const dispatcher = await stage.boot();
        const published = await stage.publish(3);
        await stage.receiver.waitFor(3);
        const unreadable = () =>
          dispatcher.logs().filter(({ event }) => event === 'secret.unreadable') as { reason: string }[];
        const states = () =>
          stage.pool
            .query<{ attempt_count: number; leased: boolean; waits: boolean }>(
              `select attempt_count, lease_until is not null as leased, due_at > now() + interval '20 seconds' as waits
               from waybill.delivery_queue where endpoint_id = $1`,
              [endpointId],
            )
            .then((result) => result.rows);
        await waitFor(async () => (await states()).every(({ waits }) => waits), {
          what: 'all of them to wait',
        });
        const waiting = { attempt_count: 0, leased: false, waits: true };
        expect(await states()).toEqual([waiting, waiting, waiting]);
        expect(unreadable().length).toBeGreaterThanOrEqual(1);
        expect(unreadable()[0]!.reason).toMatch(/^sec_[0-9a-f]{32}: A sealed value cannot be opened: /);
        expect(dispatcher.logText()).not.toContain('whsec_');
        const { rows: attempts } = await stage.pool.query(
          'select from waybill.attempts where endpoint_id = $1',
          [endpointId],
        );
        expect(attempts).toEqual([]);
        for (const request of stage.receiver.requests) {
          expect(request.path).not.toBe('/spoiled');
          verifySignature(request, stage.secret);
        }
        // It is mended, and half a minute goes by.
        await stage.pool.query(
          'update waybill.endpoint_secrets set sealed_secret = $2 where endpoint_id = $1',
          [endpointId, rows[0]!.sealed_secret],
        );
        await stage.pool.query('update waybill.delivery_queue set due_at = now() where endpoint_id = $1', [
          endpointId,
        ]);
        await stage.boot();
        const all = await stage.receiver.waitFor(6);
        expect(
          all.filter(({ path }) => path === '/spoiled').map(({ header }) => header('waybill-attempt')),
        ).toEqual(['1', '1', '1']);
        expect(new Set(all.map(({ deliveryId }) => deliveryId))).toEqual(
          new Set(published.map(({ wireId }) => wireId)),
        );
      } finally {
        for (const cleanUp of cleanUps) await cleanUp();
      }
    },
  );

  it('does not open in another tenant either, whose api says that it is our fault', async ({
    onTestFinished,
  }) => {
    const platform = await openPlatform();
    onTestFinished(() => platform.close());
    const api = await platform.bootApi();
    await platform.addEndpoint('http://127.0.0.1:8499/');
    const other = await createTenantWithKey(platform.databaseUrl);
    await platform.pool.query(
      `insert into waybill.tenant_data_keys (tenant_id, version, wrapped_key, kek_version)
       select $1, version, wrapped_key, kek_version from waybill.tenant_data_keys`,
      [other.tenantId],
    );
    const answer = await other.clientOf(api.url).post('/v1/endpoints', { url: 'http://127.0.0.1:8499/' });
    expect([answer.status, answer.body['code']]).toEqual([500, 'secret_unreadable']);
    const { rows } = await platform.pool.query('select from waybill.endpoints where tenant_id = $1', [
      other.tenantId,
    ]);
    expect(rows).toEqual([]);
  });
});
