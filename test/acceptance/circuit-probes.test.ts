import { randomUUID } from 'node:crypto';

import { describe, expect, it } from 'vitest';

import { acceptEvents, claimDeliveries, ensureCircuits, recordAttempts } from '#outbox';

import { createTestDatabase, createTestPool } from '../support/database.js';
import { plantTenants } from '../support/exercise-outbox.js';
import { listenFor, openScene } from '../support/scene.js';
import { settleClaim } from '../support/settle-claim.js';
import { openStage, QUICK } from '../support/stage.js';
import { waitFor } from '../support/wait-for.js';

const HOUR_MS = 3_600_000;
/** Never the reason why a delivery ends or waits. */
const TENTHS = { schedule_seconds: Array.from({ length: 40 }, () => 0.1), jitter: 0 };

/** A database without dispatchers, and one endpoint in it that is owed forty deliveries. */
async function openPlanted(onTestFinished: (cleanUp: () => Promise<void>) => void) {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  const [planted] = await plantTenants(database.pool, [randomUUID()]);
  const endpoint = planted!;
  const event = (n: number) => ({
    tenantId: endpoint.tenantId,
    eventType: 'order.created',
    payload: Buffer.from(String(n)),
    contentType: 'application/json',
    metadata: null,
    notBefore: null,
    idempotency: null,
  });
  const events = Array.from({ length: 40 }, (_, n) => event(n));
  await acceptEvents(database.pool, events, { maxAgeMs: HOUR_MS });
  return { database, endpoint };
}

describe.concurrent('a probe', { timeout: 120_000 }, () => {
  it('[row 43] is lent to one of eight claimers that ask at the same moment', async ({ onTestFinished }) => {
    const { database, endpoint } = await openPlanted(onTestFinished);
    const pool = createTestPool(database.url, 8);
    onTestFinished(() => pool.end());
    await database.pool.query(
      `insert into waybill.circuits (tenant_id, endpoint_id, state, open_until) values ($1, $2, 'open', now())`,
      [endpoint.tenantId, endpoint.endpointId],
    );
    let last = '';
    for (let round = 0; round < 20; round += 1) {
      const claims = await Promise.all(
        Array.from({ length: 8 }, () =>
          claimDeliveries(pool, [{ ...endpoint, quota: 5, watermarkMs: 0 }], {
            claimToken: randomUUID(),
            leaseMs: 60_000,
          }),
        ),
      );
      const taken = claims.flatMap(({ deliveries }) => deliveries);
      expect(taken.length).toBe(1);
      expect(taken[0]!.endpoint.standing).toBe('probe');
      expect(taken[0]!.deliveryId).not.toBe(last);
      last = taken[0]!.deliveryId;
      const { rows } = await database.pool.query<{ leased: number }>(
        'select count(*)::integer as leased from waybill.delivery_queue where lease_until is not null',
      );
      expect(rows).toEqual([{ leased: 1 }]);
      // It failed, and so did its window.
      await database.pool.query(`update waybill.delivery_queue set lease_until = null, claim_token = null
        where lease_until is not null`);
      await database.pool.query('update waybill.circuits set probe_token = null, probe_until = null');
    }
  });

  it('is not the only thing a batch tells: a hold and a 410 stand, though it ends with a success', async ({
    onTestFinished,
  }) => {
    const { database, endpoint } = await openPlanted(onTestFinished);
    const { deliveries } = await claimDeliveries(database.pool, [{ ...endpoint, quota: 2, watermarkMs: 0 }], {
      claimToken: randomUUID(),
      leaseMs: 60_000,
    });
    const lesson = {
      policy: { failures: 5, failureRatio: null, openMs: 1_000 },
      tripped: false,
      isProbe: false,
      holdMs: null,
      gone: false,
    };
    await ensureCircuits(database.pool, [endpoint]);
    await recordAttempts(database.pool, [
      {
        ...settleClaim(deliveries[0]!, 'failed'),
        lesson: { ...lesson, succeeded: false, holdMs: 60_000, gone: true },
      },
      { ...settleClaim(deliveries[1]!, 'succeeded'), lesson: { ...lesson, succeeded: true } },
    ]);
    const { rows } = await database.pool.query(
      `select state, consecutive_failures, held_until > now() + interval '50 seconds' as held, gone_at is not null as gone
       from waybill.circuits where endpoint_id = $1`,
      [endpoint.endpointId],
    );
    expect(rows).toEqual([{ state: 'closed', consecutive_failures: 0, held: true, gone: true }]);
  });

  it('[row 44] whose process was killed is followed by another one when its lease is over, and not before', async ({
    onTestFinished,
  }) => {
    const own = await openStage(onTestFinished);
    await listenFor(own, own.endpointId, 'unused');
    const env = { ...QUICK, WAYBILL_LEASE_MS: '3000' };
    const first = await own.boot(env);
    const scene = await openScene(own, onTestFinished, {
      circuit_failures: 5,
      circuit_open_ms: 300,
      retry: TENTHS,
    });
    scene.receiver.answer(500);
    await scene.publish(20);
    await scene.untilCircuit('open');
    await waitFor(async () => (await scene.deliveries()).every(({ leased }) => !leased), {
      what: 'the end of what was on its way',
    });
    const before = scene.receiver.requests.length;
    scene.receiver.hold();
    await waitFor(() => scene.receiver.held > 0, { what: 'the probe' });
    await first.kill();
    await own.untilSessionsEnded();
    const { probeUntilMs } = (await scene.circuit())!;
    expect(probeUntilMs).not.toBeNull();
    scene.receiver.release(200);
    scene.receiver.answer(200);
    await own.boot(env);
    await scene.receiver.waitFor(before + 2);
    const [killed, next] = scene.receiver.requests.slice(before);
    expect(next!.at).toBeGreaterThanOrEqual(probeUntilMs! - 20);
    expect(next!.deliveryId).not.toBe(killed!.deliveryId);
    await scene.untilAll(['succeeded']);
    expect(await scene.circuit()).toMatchObject({ state: 'closed', failures: 0, probeUntilMs: null });
    const sentAfter = scene.receiver.requests.slice(before + 1).map(({ deliveryId }) => deliveryId);
    expect(sentAfter.filter((deliveryId) => deliveryId === killed!.deliveryId).length).toBe(1);
  });
});
