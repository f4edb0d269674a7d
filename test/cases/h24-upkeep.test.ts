import { Client } from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { purgeIdempotencyKeys } from '#outbox';

import { listenFor, openScene, setPolicy } from '../support/scene.js';
import { openStage, QUICK, type Stage } from '../support/stage.js';
import { FIND_LAPSED } from '../support/statements.js';
import { waitFor } from '../support/wait-for.js';

const DISPATCHERS = 3;
const HEARTBEAT = 'insert into waybill.replicas';
const DISABLE = "set status = 'disabled', disabled_reason";
/** Enough that three replicas see the same rows at the same tick. */
const MANY = 40;

const countOf = (piece: string): number =>
  [...stage.proxy.statements].find(([sql]) => sql.includes(piece))?.[1] ?? 0;

async function untilMore(piece: string, times: number): Promise<void> {
  const wanted = countOf(piece) + times;
  await waitFor(() => countOf(piece) >= wanted, { what: `${times} more of ${piece}` });
}

let stage: Stage;
const cleanUps: (() => Promise<void>)[] = [];

beforeAll(async () => {
  stage = await openStage((cleanUp) => void cleanUps.push(cleanUp));
  await listenFor(stage, stage.endpointId, 'unused');
  await Promise.all(Array.from({ length: DISPATCHERS }, () => stage.boot(QUICK)));
});
afterAll(async () => {
  for (const cleanUp of cleanUps) await cleanUp();
});

describe('[H24] the upkeep of three dispatchers', { timeout: 120_000 }, () => {
  it('never runs over itself: while a locked row makes reap hang, the other tasks go on, and it is done once', async ({
    onTestFinished,
  }) => {
    const scene = await openScene(stage, onTestFinished, { status: 'paused' });
    const beside = await openScene(stage, onTestFinished);
    await scene.publish(1);
    const holder = new Client({ connectionString: stage.databaseUrl });
    await holder.connect();
    onTestFinished(() => holder.end());
    await holder.query('begin');
    await holder.query('select from waybill.deliveries where endpoint_id = $1 for update', [
      scene.endpointId,
    ]);
    await stage.pool.query(
      `update waybill.delivery_queue
       set lease_until = now() - interval '1 second', claim_token = gen_random_uuid(), attempt_count = 1, cycle_attempt_count = 1
       where endpoint_id = $1`,
      [scene.endpointId],
    );
    // A lock timeout is not the end of it: the recorder asks again, inside the same run.
    const hangs = (): boolean =>
      stage.dispatchers.every((app) => app.logs().some(({ event }) => event === 'record.failed'));
    await waitFor(hangs, { what: 'a reap of each that hangs' });
    const looks = countOf(FIND_LAPSED);
    await beside.publish(5);
    await beside.untilAll(['succeeded']);
    await untilMore(HEARTBEAT, 2 * DISPATCHERS);
    await untilMore(DISABLE, DISPATCHERS);
    expect(countOf(FIND_LAPSED)).toBe(looks);

    await holder.query('rollback');
    await waitFor(async () => (await scene.deliveries()).every(({ leased }) => !leased), {
      what: 'the reap',
    });
    await untilMore(FIND_LAPSED, 2 * DISPATCHERS);
    const { rows } = await stage.pool.query(
      'select number, outcome from waybill.attempts where endpoint_id = $1',
      [scene.endpointId],
    );
    expect(rows).toEqual([{ number: 1, outcome: 'lease_expired' }]);
    expect(await scene.deliveries()).toMatchObject([{ state: 'failed', attempts: 1, owed: true }]);
    await setPolicy(stage, scene.endpointId, { status: 'enabled' });
    await scene.untilAll(['succeeded']);
    expect(scene.receiver.requests.length).toBe(1);
  });

  it('runs again at the next tick after it threw, and does nothing twice', async ({ onTestFinished }) => {
    const operator = await openScene(stage, onTestFinished);
    await stage.pool.query(
      `insert into waybill.subscriptions (tenant_id, endpoint_id, event_type)
       select $1, $2, unnest(array['waybill.endpoint.disabled', 'waybill.delivery.dead'])`,
      [stage.tenantId, operator.endpointId],
    );
    const scene = await openScene(stage, onTestFinished, { status: 'paused' });
    await scene.publish(MANY);

    const thrown = stage.proxy.on(DISABLE, { moment: 'before', action: 'cut', times: DISPATCHERS });
    await waitFor(() => thrown.hits === DISPATCHERS, { what: 'a tick of each that throws' });
    // Forty endpoints are gone and forty debts are over: each replica sees all of them at its next tick.
    await stage.pool.query(
      `with added as (
         insert into waybill.endpoints (tenant_id, id, url)
         select $1, gen_random_uuid(), 'http://127.0.0.1/' from generate_series(1, $2::integer)
         returning tenant_id, id
       )
       insert into waybill.circuits (tenant_id, endpoint_id, gone_at) select tenant_id, id, now() from added`,
      [stage.tenantId, MANY],
    );
    await stage.pool.query(
      `update waybill.delivery_queue set expires_at = now() - interval '1 second' where endpoint_id = $1`,
      [scene.endpointId],
    );
    await operator.receiver.waitFor(2 * MANY);
    await untilMore(DISABLE, 2 * DISPATCHERS);
    await operator.untilAll(['succeeded']);
    // Each was made once; one may have been sent again if the busy receiver of the test let it time out.
    expect((await operator.deliveries()).length).toBe(2 * MANY);
    expect(new Set(operator.receiver.requests.map(({ body }) => body.toString('utf8'))).size).toBe(2 * MANY);
    const { rows } = await stage.pool.query(
      `select status, disabled_reason, version, count(*)::integer from waybill.endpoints
       where url = 'http://127.0.0.1/' group by 1, 2, 3`,
    );
    expect(rows).toEqual([{ status: 'disabled', disabled_reason: 'gone', version: 2, count: MANY }]);
    expect((await scene.deliveries()).map(({ state, reason }) => `${state} ${reason}`)).toEqual(
      Array.from({ length: MANY }, () => 'dead expired'),
    );
    const failed = stage.dispatchers.flatMap((app) =>
      app.logs().filter(({ event, task }) => event === 'upkeep.failed' && task === 'disable'),
    );
    expect(failed.length).toBeGreaterThanOrEqual(DISPATCHERS);
    for (const app of stage.dispatchers) expect(app.process.exitCode).toBeNull();
  });

  it('purges each idempotency key once, whoever else purges', async () => {
    await stage.pool.query(
      `insert into waybill.idempotency_keys (tenant_id, key, fingerprint, resource_id, created_at)
       select $1, 'key ' || n, decode(repeat('00', 32), 'hex'), gen_random_uuid(), now() - case when n > 900 then interval '6 days' else interval '8 days' end
       from generate_series(1, 1000) n`,
      [stage.tenantId],
    );
    const purged: number[] = [];
    for (let round = 0; round < 2; round += 1)
      purged.push(...(await Promise.all([1, 2, 3].map(() => purgeIdempotencyKeys(stage.pool, 200)))));
    expect(purged.reduce((sum, count) => sum + count, 0)).toBe(900);
    expect((await stage.pool.query('select from waybill.idempotency_keys')).rowCount).toBe(100);
  });
});
