import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

import { Client } from 'pg';
import { describe, expect, it } from 'vitest';

import { expectSettled } from '../support/expect-settled.js';
import { startRawReceiver } from '../support/raw-receiver.js';
import type { Answer } from '../support/receiver.js';
import { openStage, QUICK, type Stage } from '../support/stage.js';
import { CLAIM, DISCOVER, RECORD } from '../support/statements.js';
import { waitFor } from '../support/wait-for.js';

interface AttemptRow {
  number: number;
  outcome: string;
  status_code: number | null;
  error_kind: string | null;
  error: string | null;
  response_body: Buffer | null;
  started_at: Date;
  duration_ms: number;
  recorded_at: Date;
}

const readAttempts = async (stage: Stage, deliveryId: string): Promise<AttemptRow[]> =>
  (
    await stage.pool.query<AttemptRow>(
      `select a.* from waybill.attempts a
       join waybill.deliveries d using (tenant_id, event_id, endpoint_id)
       where d.id = $1 order by a.number`,
      [deliveryId],
    )
  ).rows;

const countOf = (stage: Stage, piece: string): number =>
  [...stage.proxy.statements].find(([sql]) => sql.includes(piece))?.[1] ?? 0;

describe.concurrent('attempts', { timeout: 120_000 }, () => {
  it.for([16, 5])(
    '[row 33] end after %i failures, and the delivery is never claimed again',
    async (limit, { onTestFinished }) => {
      const stage = await openStage(onTestFinished);
      stage.receiver.answer(500);
      await stage.boot({
        ...QUICK,
        WAYBILL_RETRY_SCHEDULE: Array.from({ length: limit - 1 }, () => '0').join(','),
        WAYBILL_ATTEMPT_TIMEOUT_MS: '10000',
        WAYBILL_LEASE_MS: '20000',
      });
      const [delivery] = await stage.publish(1);
      const settled = await expectSettled(stage, { attemptLimit: limit });
      expect(settled.get(delivery!.deliveryId)).toMatchObject({ state: 'dead', attemptCount: limit });
      expect(stage.receiver.requests.length).toBe(limit);

      // A later event goes out beside it, and the dispatcher looks around some more: the dead one stays where it is.
      stage.receiver.answer(200);
      await stage.publish(1);
      const looks = countOf(stage, DISCOVER) + 10;
      await waitFor(() => countOf(stage, DISCOVER) >= looks, { what: 'ten more looks' });
      await expectSettled(stage, { attemptLimit: limit });
      expect(stage.receiver.requests.length).toBe(limit + 1);
      expect(stage.receiver.requestsFor(delivery!.wireId).length).toBe(limit);
    },
  );

  it('[row 36] leave permanent rows in order, with status, cut error and times, and none for what was not sent', async ({
    onTestFinished,
  }) => {
    const stage = await openStage(onTestFinished);
    const answers: Answer[] = [
      { status: 302, headers: { location: `http://127.0.0.1/${'ä'.repeat(900)}` }, body: 'moved' },
      'reset',
      'hang',
      { status: 503, body: Buffer.from([0, 0xff, 0xfe, 0x41]) },
      200,
    ];
    let asked = 0;
    stage.receiver.answer(() => answers[asked++]!);
    // A second endpoint is paused after its event was accepted: its delivery is owed and not sent.
    const paused = await stage.addEndpoint(`${stage.receiver.url}/paused`);
    const [first, second] = await stage.publish(1, { hint: false });
    await stage.pool.query(`update waybill.endpoints set status = 'paused' where id = $1`, [
      paused.endpointId,
    ]);
    const sent = first!.endpointId === stage.endpointId ? first! : second!;
    await stage.boot();
    await stage.receiver.waitFor(5);
    const rows = await waitFor(
      async () => {
        const attempts = await readAttempts(stage, sent.deliveryId);
        return attempts.length === 5 && attempts;
      },
      { what: 'five attempts' },
    );
    expect(
      rows.map(({ number, outcome, status_code, error_kind }) => [number, outcome, status_code, error_kind]),
    ).toEqual([
      [1, 'failed', 302, 'http_status'],
      [2, 'failed', null, 'connection_reset'],
      [3, 'failed', null, 'timeout'],
      [4, 'failed', 503, 'http_status'],
      [5, 'succeeded', 200, null],
    ]);
    expect(rows.map(({ error }) => error === null)).toEqual([false, false, false, false, true]);
    for (const { error } of rows) expect(error?.length ?? 0).toBeLessThanOrEqual(500);
    expect(rows[0]!.error!.length).toBe(500);
    expect(rows[3]!.response_body).toEqual(Buffer.from([0, 0xff, 0xfe, 0x41]));
    const times = rows.flatMap(({ started_at, recorded_at }) => [
      started_at.getTime(),
      recorded_at.getTime(),
    ]);
    // Started by the dispatcher's count of the database's clock, which may run ahead by a claim's round trip.
    const stepsBack = times.slice(1).filter((time, index) => time < times[index]! - 250);
    expect(stepsBack).toEqual([]);
    expect(rows[2]!.duration_ms).toBeGreaterThanOrEqual(990);
    const unsent = sent === first ? second! : first!;
    expect(await readAttempts(stage, unsent.deliveryId)).toEqual([]);

    await stage.pool.query(`update waybill.endpoints set status = 'enabled' where id = $1`, [
      paused.endpointId,
    ]);
    answers[asked] = 200;
    await expectSettled(stage, { attemptLimit: 5 });
    expect(await readAttempts(stage, sent.deliveryId)).toEqual(rows);
  });

  it('[row 38] [row 40] that cannot be signed or addressed are dead at once, and their batch mates arrive', async ({
    onTestFinished,
  }) => {
    const stage = await openStage(onTestFinished);
    const spoil = {
      secret: await stage.addEndpoint(`${stage.receiver.url}/secret`),
      noSecret: await stage.addEndpoint(`${stage.receiver.url}/no-secret`),
      port: await stage.addEndpoint(`${stage.receiver.url}/port`),
      text: await stage.addEndpoint(`${stage.receiver.url}/text`),
    };
    const published = await stage.publish(5, { hint: false });
    const { pool } = stage;
    // As a release before secrets were sealed may have left it.
    await pool.query(
      `update waybill.endpoint_secrets set secret = 'whsec_!!', sealed_secret = null where endpoint_id = $1`,
      [spoil.secret.endpointId],
    );
    await pool.query(`update waybill.endpoint_secrets set revoked_at = now() where endpoint_id = $1`, [
      spoil.noSecret.endpointId,
    ]);
    await pool.query(`update waybill.endpoints set url = 'http://127.0.0.1:99999/' where id = $1`, [
      spoil.port.endpointId,
    ]);
    await pool.query(`update waybill.endpoints set url = 'no url at all' where id = $1`, [
      spoil.text.endpointId,
    ]);
    await stage.boot();
    const settled = await expectSettled(stage, { attemptLimit: 5 });
    for (const { deliveryId, endpointId } of published) {
      const isGood = endpointId === stage.endpointId;
      const state = isGood ? 'succeeded' : 'dead';
      expect(settled.get(deliveryId)).toMatchObject({ state, attemptCount: 1 });
      const [attempt] = await readAttempts(stage, deliveryId);
      expect(attempt!.error_kind).toBe(isGood ? null : 'unsendable');
    }
    expect(stage.receiver.requests.length).toBe(5);
    const { rows } = await pool.query(
      'select reason, count(*)::integer from waybill.dead_letters group by reason',
    );
    expect(rows).toEqual([{ reason: 'unsendable', count: 20 }]);
    expect(stage.dispatchers[0]!.logText()).not.toContain('whsec_');
    // One claim took them all: the good ones shared their batch with the bad.
    expect(countOf(stage, CLAIM)).toBeLessThanOrEqual(6);
  });

  it('[row 37] keep 500 bytes of a 5 MB response, cut between characters', async ({ onTestFinished }) => {
    const stage = await openStage(onTestFinished);
    stage.receiver.answer({ status: 200, body: `x${'ä'.repeat(2_500_000)}` });
    await stage.boot();
    const [delivery] = await stage.publish(1);
    await expectSettled(stage, { attemptLimit: 1 });
    const [attempt] = await readAttempts(stage, delivery!.deliveryId);
    expect(attempt!.response_body!.toString('utf8')).toBe(`x${'ä'.repeat(249)}`);
  });

  it('[row 39] [H18] end at their total deadline when the receiver drips, as a timeout', async ({
    onTestFinished,
  }) => {
    const stage = await openStage(onTestFinished);
    const dripping = await startRawReceiver(({ socket }) => void drip(socket));
    onTestFinished(() => dripping.close());
    await stage.pool.query('update waybill.endpoints set url = $1', [`http://127.0.0.1:${dripping.port}/`]);
    await stage.boot({ ...QUICK, WAYBILL_RETRY_SCHEDULE: '0' });
    const [delivery] = await stage.publish(1);
    await dripping.untilClosed(2);
    await waitFor(async () => (await readAttempts(stage, delivery!.deliveryId)).length === 2, {
      what: 'both attempts',
    });
    for (const attempt of await readAttempts(stage, delivery!.deliveryId)) {
      expect(attempt).toMatchObject({ outcome: 'failed', error_kind: 'timeout', status_code: null });
      // Node's timers may fire a millisecond early.
      expect(attempt.duration_ms).toBeGreaterThanOrEqual(990);
      expect(attempt.duration_ms).toBeLessThan(5_000);
    }
  });
});

/** A receiver that is slow on purpose: its pace, not a wait of the test. */
const DRIP_MS = 300;

/** Sends the head of a response so slowly that it does not end in time. */
async function drip(socket: Socket): Promise<void> {
  for (const byte of 'HTTP/1.1 200 OK\r\n') {
    if (socket.destroyed) return;
    socket.write(byte);
    await sleep(DRIP_MS);
  }
}

/** One snapshot of all that a dying delivery changes. */
const READ_DEATH = `
select d.state, d.attempt_count,
  (select count(*)::integer from waybill.attempts) as attempts,
  (select count(*)::integer from waybill.dead_letters) as dead_letters,
  (select min(reason) from waybill.dead_letters) as reason,
  (select count(*)::integer from waybill.delivery_queue) as owed
from waybill.deliveries d
`;
const readDeath = async (stage: Stage): Promise<unknown> => (await stage.pool.query(READ_DEATH)).rows[0];
const ALIVE = { state: 'pending', attempt_count: 1, attempts: 1, dead_letters: 0, reason: null, owed: 1 };
const DEAD = { state: 'dead', attempt_count: 2, attempts: 2, dead_letters: 1, reason: 'exhausted', owed: 0 };

describe.concurrent('exhaustion', { timeout: 120_000 }, () => {
  // One retry is the shortest schedule: the first of the two attempts is put there by `spendFirstAttempt`.
  const env = { ...QUICK, WAYBILL_RETRY_SCHEDULE: '60', WAYBILL_LEASE_MS: '20000' };

  it.for([
    { moment: 'before', found: ALIVE },
    { moment: 'after', found: DEAD },
  ] as const)(
    '[row 50] [F6] writes state, dead letter and last attempt together when the connection is cut $moment the record',
    async ({ moment, found }, { onTestFinished }) => {
      const stage = await openStage(onTestFinished);
      stage.receiver.answer(500);
      await stage.publish(1, { hint: false });
      await spendFirstAttempt(stage);
      const seen: unknown[] = [];
      const cut = stage.proxy.on(RECORD, {
        moment,
        action: { run: async () => void seen.push(await readDeath(stage)) },
        times: 2,
      });
      await stage.boot(env);
      await waitFor(() => cut.hits === 2, { what: 'two records that are cut' });
      await expectSettled(stage, { attemptLimit: 2 });
      expect(seen).toEqual([found, found]);
      expect(await readDeath(stage)).toEqual(DEAD);
      expect(stage.receiver.requests.length).toBe(1);
    },
  );

  it('[row 50] leaves nothing of a record that is broken off in its middle', async ({ onTestFinished }) => {
    const stage = await openStage(onTestFinished);
    const holder = new Client({ connectionString: stage.databaseUrl });
    await holder.connect();
    onTestFinished(() => holder.end());
    stage.receiver.answer(500);
    await stage.publish(1, { hint: false });
    await spendFirstAttempt(stage);
    await holder.query('begin');
    await holder.query('select from waybill.deliveries for update');
    await stage.boot(env);
    // The record has deleted the queue row by now, and waits for the delivery's.
    const waitingRecords = async (): Promise<number[]> => {
      const { rows } = await stage.pool.query<{ pid: number }>(
        `select pid from pg_stat_activity
         where datname = current_database() and wait_event_type = 'Lock' and query like '%${RECORD}%'`,
      );
      return rows.map(({ pid }) => pid);
    };
    const [pid] = await waitFor(
      async () => {
        const pids = await waitingRecords();
        return pids.length > 0 && pids;
      },
      { what: 'a record that waits' },
    );
    expect(await readDeath(stage)).toEqual(ALIVE);
    await stage.pool.query('select pg_terminate_backend($1)', [pid]);
    await waitFor(async () => (await waitingRecords()).some((other) => other !== pid), {
      what: 'the record to be tried again',
    });
    expect(await readDeath(stage)).toEqual(ALIVE);
    await holder.query('rollback');
    await expectSettled(stage, { attemptLimit: 2 });
    expect(await readDeath(stage)).toEqual(DEAD);
    expect(stage.receiver.requests.length).toBe(1);
  });
});

/** Makes the next attempt of the one delivery its last. */
async function spendFirstAttempt(stage: Stage): Promise<void> {
  for (const table of ['delivery_queue', 'deliveries'])
    await stage.pool.query(`update waybill.${table} set cycle_attempt_count = 1, attempt_count = 1`);
  await stage.pool.query(
    `insert into waybill.attempts (tenant_id, event_id, endpoint_id, number, outcome, status_code, error_kind, endpoint_revision, started_at, duration_ms)
     select tenant_id, event_id, endpoint_id, 1, 'failed', 500, 'http_status', 1, now(), 1 from waybill.delivery_queue`,
  );
}
