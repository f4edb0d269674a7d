import { randomUUID } from 'node:crypto';

import { acceptEvents, claimDeliveries } from '#outbox';
import { newId } from '#runtime';
import { describe, expect, it } from 'vitest';

import { startReceiver } from '../support/receiver.js';
import { openStage, QUICK, type Stage } from '../support/stage.js';
import { drain, waitFor } from '../support/wait-for.js';

const LARGE = JSON.stringify('x'.repeat(262_142));
/** 4 MiB of payloads go with one claim. */
const LARGE_PER_CLAIM = 16;

/** A tenant beside the stage's own, with one endpoint that takes everything. */
async function addStranger(stage: Stage, url: string): Promise<string> {
  const [tenantId, endpointId] = [newId(), newId()];
  const { pool } = stage;
  await pool.query(`insert into waybill.tenants (id, name) values ($1, 'stranger')`, [tenantId]);
  await pool.query('insert into waybill.endpoints (tenant_id, id, url) values ($1, $2, $3)', [
    tenantId,
    endpointId,
    url,
  ]);
  await pool.query(
    'insert into waybill.endpoint_secrets (tenant_id, endpoint_id, id, secret) values ($1, $2, $3, $4)',
    [tenantId, endpointId, newId(), stage.secret],
  );
  await pool.query(
    `insert into waybill.subscriptions (tenant_id, endpoint_id, event_type) values ($1, $2, '*')`,
    [tenantId, endpointId],
  );
  return tenantId;
}

const eventOf = (tenantId: string) => ({
  tenantId,
  eventType: 'order.created',
  payload: Buffer.from('{}'),
  contentType: 'application/json',
  metadata: null,
  notBefore: null,
  idempotency: null,
});

describe('a backlog', () => {
  it('[I1] of large payloads is claimed by bytes, each delivery once, and none is passed over', async ({
    onTestFinished,
  }) => {
    const stage = await openStage(onTestFinished);
    const { tenantId, endpointId, pool } = stage;
    const published = await stage.publish(
      Array.from({ length: 40 }, () => LARGE),
      { hint: false },
    );
    const sizes: number[] = [];
    const claimed: string[] = [];
    while (claimed.length < published.length && sizes.length < 10) {
      const quotas = [{ tenantId, endpointId, quota: 128, watermarkMs: 0 }];
      const { deliveries } = await claimDeliveries(pool, quotas, {
        claimToken: randomUUID(),
        leaseMs: 60_000,
      });
      sizes.push(deliveries.length);
      claimed.push(...deliveries.map(({ deliveryId }) => deliveryId));
    }
    expect(sizes).toEqual([LARGE_PER_CLAIM, LARGE_PER_CLAIM, 40 - 2 * LARGE_PER_CLAIM]);
    expect(claimed.toSorted()).toEqual(published.map(({ deliveryId }) => deliveryId).toSorted());
  });

  it('[I1] [I9] of large payloads is delivered, although every claim of it is cut short', async ({
    onTestFinished,
  }) => {
    const stage = await openStage(onTestFinished);
    await stage.publish(
      Array.from({ length: 50 }, () => LARGE),
      { hint: false },
    );
    // Found once, at the start: no later look may be what finds the rest.
    await stage.boot({ ...QUICK, WAYBILL_POLL_MS: '60000' });
    await drain(stage.pool);
    expect(stage.receiver.uniqueDeliveries()).toHaveLength(50);
  });

  it('[I9] of outcomes that the database was slow to take does not leave due work lying', async ({
    onTestFinished,
  }) => {
    const stage = await openStage(onTestFinished);
    const dispatcher = await stage.boot({
      WAYBILL_POLL_MS: '60000',
      WAYBILL_CONCURRENCY: '1024',
      WAYBILL_ENDPOINT_CONCURRENCY: '2048',
    });
    const holder = await stage.pool.connect();
    await holder.query('begin');
    await holder.query('lock table waybill.attempts in share mode');
    await stage.publish(5_000);
    const unrecorded = async (): Promise<number> => {
      const text = await (await fetch(`${dispatcher.url}/metrics`)).text();
      return Number(/^waybill_dispatcher_unrecorded (\d+)/m.exec(text)?.[1]);
    };
    // More than it lets wait: it claims no more, and its sends are over.
    await waitFor(async () => (await unrecorded()) > 2_048 && (await stage.countClaimed()) > 2_048, {
      what: 'a backlog of outcomes',
    });
    await holder.query('rollback');
    holder.release();
    await drain(stage.pool, 40_000);
    expect(stage.receiver.uniqueDeliveries()).toHaveLength(5_000);
  });

  it('[I7] behind one tenant’s receivers that hang leaves room for another tenant', async ({
    onTestFinished,
  }) => {
    const stage = await openStage(onTestFinished);
    stage.receiver.answer('hang');
    await stage.addEndpoint(`${stage.receiver.url}/second`);
    const healthy = await startReceiver();
    onTestFinished(() => healthy.close());
    const stranger = await addStranger(stage, healthy.url);
    await stage.publish(50, { hint: false });
    await stage.boot({ ...QUICK, WAYBILL_CONCURRENCY: '8', WAYBILL_ENDPOINT_CONCURRENCY: '4' });
    await waitFor(async () => (await stage.countClaimed()) >= 6, { what: 'the hanging deliveries' });
    await acceptEvents(stage.pool, [eventOf(stranger)], { maxAgeMs: 60_000 });
    await healthy.waitFor(1);
    expect(await stage.countClaimed()).toBeLessThanOrEqual(8);
  });
});
