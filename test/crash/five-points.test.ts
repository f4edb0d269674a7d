import { Client } from 'pg';
import { describe, expect, it } from 'vitest';

import type { RunningApp } from '../support/apps.js';
import { expectSettled } from '../support/expect-settled.js';
import { openStage, QUICK, QUICK_ATTEMPTS, type Stage } from '../support/stage.js';
import { CLAIM, RECORD } from '../support/statements.js';
import { waitFor } from '../support/wait-for.js';

const EVENTS = 20;

/** What the database must show of the killed dispatcher's work, before another one starts. */
interface Left {
  readonly claimed: number;
  readonly requests: number;
  readonly attempts: number;
}

/** Arranges for the kill; resolves when the dispatcher has been killed at its point. */
type Arrange = (stage: Stage, victim: () => RunningApp, onTestFinished: CleanUp) => Promise<void>;
type CleanUp = (cleanUp: () => Promise<void>) => void;

/** Kills when the proxy sees the statement; the connection is reset afterwards, as a dead process leaves it. */
const atStatement =
  (match: string, moment: 'before' | 'after'): Arrange =>
  async (stage, victim) => {
    const fault = stage.proxy.on(match, {
      moment,
      action: { run: async () => void (await victim().kill()) },
    });
    await stage.publish(EVENTS);
    await fault.hit;
    expect(fault.hits).toBe(1);
  };

/** Kills on the first whole request, which then never gets an answer. */
const inMidSend: Arrange = async (stage, victim) => {
  const killed = new Promise<void>((resolve) => {
    const forget = stage.receiver.onRequest(async () => {
      forget();
      stage.receiver.hold();
      await victim().kill();
      resolve();
    });
  });
  await stage.publish(EVENTS);
  await killed;
  stage.receiver.release();
};

/** Kills while PostgreSQL is in the middle of the record: it has moved the queue and waits for a delivery's lock. */
const inMidRecord: Arrange = async (stage, victim, onTestFinished) => {
  const holder = new Client({ connectionString: stage.databaseUrl });
  await holder.connect();
  onTestFinished(() => holder.end());
  await stage.publish(EVENTS, { hint: false });
  await holder.query('begin');
  await holder.query('select from waybill.deliveries for update');
  const waiting = await waitFor(
    async () => {
      const { rows } = await stage.pool.query<{ pid: number }>(
        `select pid from pg_stat_activity
         where datname = current_database() and wait_event_type = 'Lock' and query like '%${RECORD}%'`,
      );
      return rows[0];
    },
    { what: 'a record in its middle' },
  );
  await victim().kill();
  // The session notices its client's death only when it answers: end it here, in its middle.
  await stage.pool.query('select pg_terminate_backend($1)', [waiting.pid]);
  await waitFor(
    async () =>
      (await stage.pool.query('select from pg_stat_activity where pid = $1', [waiting.pid])).rowCount === 0,
    { what: 'the end of that session' },
  );
  await holder.query('rollback');
};

interface Point {
  readonly name: string;
  readonly arrange: Arrange;
  expectLeft(left: Left): void;
}

const POINTS: readonly Point[] = [
  {
    name: 'before its claim commits',
    arrange: atStatement(CLAIM, 'before'),
    expectLeft: (left) => expect(left).toEqual({ claimed: 0, requests: 0, attempts: 0 }),
  },
  {
    name: 'after its claim, before it knows',
    arrange: atStatement(CLAIM, 'after'),
    expectLeft({ claimed, requests, attempts }) {
      expect(claimed).toBeGreaterThan(0);
      expect({ requests, attempts }).toEqual({ requests: 0, attempts: 0 });
    },
  },
  {
    name: 'in mid-send',
    arrange: inMidSend,
    expectLeft({ claimed, requests }) {
      expect(claimed).toBeGreaterThan(0);
      expect(requests).toBeGreaterThan(0);
    },
  },
  {
    name: 'after the responses, before their record',
    arrange: atStatement(RECORD, 'before'),
    expectLeft({ claimed, requests, attempts }) {
      expect(claimed).toBeGreaterThan(0);
      expect(requests).toBeGreaterThan(0);
      expect(attempts).toBe(0);
    },
  },
  {
    name: 'in the middle of a record',
    arrange: inMidRecord,
    expectLeft({ claimed, requests, attempts }) {
      expect(claimed).toBe(EVENTS);
      expect(requests).toBe(EVENTS);
      expect(attempts).toBe(0);
    },
  },
  {
    name: 'after its record, before it knows',
    arrange: atStatement(RECORD, 'after'),
    expectLeft({ requests, attempts }) {
      expect(attempts).toBeGreaterThan(0);
      expect(requests).toBeGreaterThanOrEqual(attempts);
    },
  },
];

describe.concurrent('a dispatcher that is killed', () => {
  it.for(POINTS)(
    '[row 21] [F1] $name loses nothing, and counts what it sent',
    async (point, { onTestFinished }) => {
      const stage = await openStage(onTestFinished);
      // Long enough for an attempt to outlast the waiting at the database.
      const env = { ...QUICK, WAYBILL_ATTEMPT_TIMEOUT_MS: '2000', WAYBILL_LEASE_MS: '4000' };
      const victim = await stage.boot(env);
      await point.arrange(stage, () => victim, onTestFinished);
      expect(await victim.exited).toEqual({ code: null, signal: 'SIGKILL' });
      const { rows } = await stage.pool.query('select count(*)::integer as attempts from waybill.attempts');
      const left = {
        claimed: await stage.countClaimed(),
        requests: stage.receiver.requests.length,
        attempts: rows[0].attempts,
      };
      point.expectLeft(left);

      await stage.boot(env);
      const settled = await expectSettled(stage, { attemptLimit: QUICK_ATTEMPTS });
      for (const delivery of settled.values()) expect(delivery.state).toBe('succeeded');
      expect(stage.receiver.uniqueDeliveries().length).toBe(EVENTS);
      // Each claim that was under way lapsed into history, and nothing else did.
      const lapsed = [...settled.values()].filter(({ outcomes }) =>
        outcomes.includes('lease_expired'),
      ).length;
      expect(lapsed).toBe(left.claimed);
    },
  );
});
