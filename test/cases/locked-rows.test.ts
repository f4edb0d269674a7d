import { randomUUID } from 'node:crypto';

import { claimDeliveries, type Claim } from '#outbox';
import { Client } from 'pg';
import { expect, it } from 'vitest';

import { expectSettled } from '../support/expect-settled.js';
import { openStage, QUICK, type Stage } from '../support/stage.js';
import { waitFor } from '../support/wait-for.js';

/** A second endpoint beside the stage's own; each event goes to both. */
async function openPair(onTestFinished: (cleanUp: () => Promise<void>) => void) {
  const stage = await openStage(onTestFinished);
  const { endpointId: other } = await stage.addEndpoint(`${stage.receiver.url}/other`);
  const client = new Client({ connectionString: stage.databaseUrl });
  await client.connect();
  onTestFinished(() => client.end());
  // Waiting for anybody's lock would be an error.
  await client.query(`set lock_timeout = '2s'`);
  const claim = (): Promise<Claim> => {
    const quotas = [stage.endpointId, other].map((endpointId) => ({
      tenantId: stage.tenantId,
      endpointId,
      quota: 5,
      watermarkMs: 0,
    }));
    return claimDeliveries(client, quotas, { claimToken: randomUUID(), leaseMs: 60_000 });
  };
  return { stage, other, claim };
}

/** Runs `during` while a transaction of somebody else holds the rows that `sql` locks. */
async function whileLocked<Result>(
  stage: Stage,
  sql: string,
  during: () => Promise<Result>,
): Promise<Result> {
  const holder = await stage.pool.connect();
  try {
    await holder.query('begin');
    expect((await holder.query(sql)).rowCount).toBe(1);
    return await during();
  } finally {
    await holder.query('rollback');
    holder.release();
  }
}

const taken = ({ deliveries }: Claim, endpointId: string) =>
  deliveries.filter((delivery) => delivery.endpointId === endpointId).length;

it('[I7] [F5] a claim passes over the tokens of an endpoint that somebody edits, and takes the others’ deliveries', async ({
  onTestFinished,
}) => {
  const { stage, other, claim } = await openPair(onTestFinished);
  await stage.pool.query('update waybill.endpoints set rate_per_second = 100 where id = $1', [other]);
  await stage.publish(3, { hint: false });
  // The first claim of an endpoint with a rate makes its row of tokens.
  expect(taken(await claim(), other)).toBe(0);
  await stage.publish(3, { hint: false });
  const lock = 'delete from waybill.rate_tokens';
  const held = await whileLocked(stage, lock, claim);
  expect([taken(held, stage.endpointId), taken(held, other)]).toEqual([3, 0]);
  expect(held.endpoints.find(({ endpointId }) => endpointId === other)).toMatchObject({
    standing: 'limited',
    waitMs: expect.any(Number),
  });
  expect(taken(await claim(), other)).toBe(5);
});

it('[I7] [F5] a claim passes over a probe whose circuit somebody has locked', async ({ onTestFinished }) => {
  const { stage, other, claim } = await openPair(onTestFinished);
  await stage.publish(2, { hint: false });
  await stage.pool.query(
    `insert into waybill.circuits (tenant_id, endpoint_id, state, open_until) values ($1, $2, 'open', now() - interval '1 s')`,
    [stage.tenantId, other],
  );
  const held = await whileLocked(stage, 'select from waybill.circuits for update', claim);
  expect([taken(held, stage.endpointId), taken(held, other)]).toEqual([2, 0]);
  expect(taken(await claim(), other)).toBe(1);
});

it('[F9] a clock of the database that stepped back holds no endpoint up', async ({ onTestFinished }) => {
  const { stage, other, claim } = await openPair(onTestFinished);
  await stage.publish(5, { hint: false });
  await stage.pool.query(
    `insert into waybill.circuits (tenant_id, endpoint_id, closed_at) values ($1, $2, now() + interval '1 hour')`,
    [stage.tenantId, stage.endpointId],
  );
  await stage.pool.query('update waybill.endpoints set rate_per_second = 50 where id = $1', [other]);
  await stage.pool.query(
    `insert into waybill.rate_tokens (tenant_id, endpoint_id, tokens, refilled_at) values ($1, $2, 0, now() + interval '1 hour')`,
    [stage.tenantId, other],
  );
  const claimed = await claim();
  expect([taken(claimed, stage.endpointId), taken(claimed, other)]).toEqual([5, 5]);
});

it('[I1] [I5] [F5] a locked circuit costs its lessons, and not one outcome beyond its lease', async ({
  onTestFinished,
}) => {
  const stage = await openStage(onTestFinished);
  const failing = await stage.addEndpoint(`${stage.receiver.url}/failing`);
  stage.receiver.answer(({ path }) => (path === '/failing' ? 500 : 200));
  await stage.boot({ ...QUICK, WAYBILL_CIRCUIT_FAILURES: '1000', WAYBILL_RETRY_SCHEDULE: '60' });
  await stage.publish(1);
  const circuit = 'select from waybill.circuits where consecutive_failures > 0';
  await waitFor(async () => (await stage.pool.query(circuit)).rowCount === 1, { what: 'a circuit to lock' });
  await whileLocked(stage, `${circuit} for update`, async () => {
    await stage.publish(40);
    const recorded = `select from waybill.attempts where outcome <> 'lease_expired'`;
    await waitFor(async () => (await stage.pool.query(recorded)).rowCount === 82, { what: 'all outcomes' });
  });
  await stage.pool.query('update waybill.endpoints set deleted_at = now() where id = $1', [
    failing.endpointId,
  ]);
  await expectSettled(stage, { attemptLimit: 1 });
  expect(stage.receiver.requests.length).toBe(82);
});
