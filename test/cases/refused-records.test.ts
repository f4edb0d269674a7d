import { randomUUID } from 'node:crypto';
import { createServer } from 'node:net';

import { claimDeliveries } from '#outbox';
import { createLogger, createPool, type Queryable } from '#runtime';
import { describe, expect, it } from 'vitest';

import { Recorder } from '../../apps/dispatcher/src/record/recorder.js';
import { expectSettled } from '../support/expect-settled.js';
import { listenOnLoopback } from '../support/listen-on-loopback.js';
import { settleClaim } from '../support/settle-claim.js';
import { openStage, QUICK } from '../support/stage.js';
import { waitFor } from '../support/wait-for.js';

const UNHURRIED = { ...QUICK, WAYBILL_ATTEMPT_TIMEOUT_MS: '10000', WAYBILL_LEASE_MS: '30000' };

describe.concurrent('a record that the database refuses', { timeout: 120_000 }, () => {
  it('[row 36] [I3] for one answer’s content costs that attempt its text, and its batch mates nothing', async ({
    onTestFinished,
  }) => {
    const stage = await openStage(onTestFinished);
    // No answer is known that the database refuses; the constraint stands for the next one that nobody thought of.
    await stage.pool.query(`alter table waybill.attempts add check (response_body <> 'odd'::bytea)`);
    const oddOrder = '{"order":7}';
    stage.receiver.answer(({ body }) => ({
      status: 200,
      body: body.toString('utf8') === oddOrder ? 'odd' : 'fine',
    }));
    stage.receiver.hold();
    const published = await stage.publish(20, { hint: false });
    const app = await stage.boot(UNHURRIED);
    // Answered all at once, so that they are recorded in one batch.
    await stage.receiver.waitFor(20);
    stage.receiver.release();
    const settled = await expectSettled(stage, { attemptLimit: 1 });
    for (const delivery of settled.values()) expect(delivery.state).toBe('succeeded');
    const { rows } = await stage.pool.query(
      `select d.id, a.error_kind, a.status_code, a.response_body from waybill.attempts a
       join waybill.deliveries d using (tenant_id, event_id, endpoint_id) where a.error_kind is not null`,
    );
    const odd = published.find(({ payload }) => payload === oddOrder)!;
    expect(rows).toEqual([
      { id: odd.deliveryId, error_kind: 'unrecordable', status_code: 200, response_body: null },
    ]);
    const failures = app.logs().filter(({ event }) => event === 'record.failed');
    expect(failures[0]!['count']).toBeGreaterThan(1);
    expect(stage.receiver.requests.length).toBe(20);
  });

  it('[I1] [F15] for a reason of its own is tried until it is taken, and nothing is sent again', async ({
    onTestFinished,
  }) => {
    const stage = await openStage(onTestFinished);
    await stage.pool.query('alter table waybill.dead_letters rename to dead_letters_away');
    const app = await stage.boot(UNHURRIED);
    // Alone in its batch: nothing is left to split, so whoever blames the data gives it up.
    await stage.publish(1);
    await waitFor(() => app.logs().filter(({ event }) => event === 'record.failed').length >= 5, {
      what: 'five refused records',
    });
    await stage.pool.query('alter table waybill.dead_letters_away rename to dead_letters');
    const settled = await expectSettled(stage, { attemptLimit: 1 });
    for (const delivery of settled.values()) expect(delivery.outcomes).toEqual(['succeeded']);
    const { rows } = await stage.pool.query('select from waybill.attempts where error_kind is not null');
    expect(rows).toEqual([]);
    expect(stage.receiver.requests.length).toBe(1);
  });

  it('[I1] [F15] by refusing a secure connection, of which the driver tells without a code, is tried until it is taken', async ({
    onTestFinished,
  }) => {
    const stage = await openStage(onTestFinished);
    await stage.publish(3, { hint: false });
    const { tenantId, endpointId } = stage;
    const quotas = [{ tenantId, endpointId, quota: 3, watermarkMs: 0 }];
    const { deliveries } = await claimDeliveries(stage.pool, quotas, {
      claimToken: randomUUID(),
      leaseMs: 60_000,
    });
    // As a server answers that cannot make another process: an error in place of a yes or no to TLS.
    const crowded = createServer((socket) => socket.on('error', () => undefined).end('E'));
    const port = await listenOnLoopback(crowded);
    const refused = createPool({
      url: `postgresql://nobody@127.0.0.1:${port}/nothing?sslmode=no-verify`,
      role: null,
      max: 1,
      applicationName: 'test',
      statementTimeoutMs: 5_000,
      lockTimeoutMs: 500,
      onIdleError: () => undefined,
    });
    onTestFinished(async () => {
      await refused.end();
      crowded.close();
    });
    let isCrowded = true;
    const db: Queryable = {
      query: (query: never) => (isCrowded ? refused : stage.pool).query(query),
    };
    const lines: string[] = [];
    const logger = createLogger('test', 'warn', { write: (line) => void lines.push(line) });
    const recorder = new Recorder(db, logger, {
      recorded: () => undefined,
      circuitsChanged: () => undefined,
    });
    for (const delivery of deliveries) recorder.add(settleClaim(delivery, 'succeeded'));
    await waitFor(() => lines.filter((line) => line.includes('record.failed')).length >= 3, {
      what: 'three refused records',
    });
    expect(recorder.unrecorded).toBe(3);
    isCrowded = false;
    await recorder.drain(20_000);
    expect(recorder.unrecorded).toBe(0);
    const { rows } = await stage.pool.query(
      `select d.state, a.outcome, a.number from waybill.deliveries d
       join waybill.attempts a using (tenant_id, event_id, endpoint_id)`,
    );
    expect(rows).toEqual(
      Array.from({ length: 3 }, () => ({ state: 'succeeded', outcome: 'succeeded', number: 1 })),
    );
  });
});
