import { randomUUID } from 'node:crypto';

import { type Claim, claimDeliveries, findLapsedClaims, recordAttempts } from '#outbox';
import { Client } from 'pg';
import { describe, expect, it } from 'vitest';

import { settleClaim } from '../support/settle-claim.js';
import { openStage, type Stage } from '../support/stage.js';

const LEASE_MS = 60_000;
type CleanUp = (cleanUp: () => Promise<void>) => void;

/** Sessions of their own, as dispatchers in other processes would have them. */
async function openSessions(stage: Stage, count: number, onTestFinished: CleanUp): Promise<Client[]> {
  const sessions = Array.from({ length: count }, () => new Client({ connectionString: stage.databaseUrl }));
  await Promise.all(sessions.map((session) => session.connect()));
  // Registered after the stage, so it runs first.
  onTestFinished(async () => {
    for (const session of sessions) await session.end();
  });
  return sessions;
}

function claim(stage: Stage, session: Client, quota: number): Promise<Claim> {
  const { tenantId, endpointId } = stage;
  const quotas = [{ tenantId, endpointId, quota, watermarkMs: 0 }];
  return claimDeliveries(session, quotas, { claimToken: randomUUID(), leaseMs: LEASE_MS });
}

const idsOf = ({ deliveries }: Claim): string[] => deliveries.map(({ deliveryId }) => deliveryId);

/** Moves every lease so that it ran out a second ago. */
const lapse = (stage: Stage) =>
  stage.pool.query(
    `update waybill.delivery_queue set lease_until = now() - interval '1 s' where lease_until is not null`,
  );

const readQueue = async (stage: Stage): Promise<unknown[]> =>
  (await stage.pool.query('select * from waybill.delivery_queue order by event_id')).rows;

describe('claims', () => {
  it('[row 18] share 24 due rows among six sessions that claim at once: disjoint, and all of them', async ({
    onTestFinished,
  }) => {
    const stage = await openStage(onTestFinished);
    const sessions = await openSessions(stage, 6, onTestFinished);
    for (let round = 0; round < 20; round += 1) {
      const published = await stage.publish(24, { hint: false });
      const claims = await Promise.all(sessions.map((session) => claim(stage, session, 4)));
      expect(claims.flatMap(idsOf).toSorted()).toEqual(
        published.map(({ deliveryId }) => deliveryId).toSorted(),
      );
    }
  });

  it('take a batch in its order, and whatever is due in the order of its times', async ({
    onTestFinished,
  }) => {
    const stage = await openStage(onTestFinished);
    const [session] = await openSessions(stage, 1, onTestFinished);
    const batch = await stage.publish(60, { hint: false });
    const ids = batch.map(({ deliveryId }) => deliveryId);
    // Equal times would be told apart by their places.
    const { rows } = await stage.pool.query<{ id: string }>(
      'select delivery_id as id from waybill.delivery_queue order by due_at, ctid desc',
    );
    expect(rows.map(({ id }) => id)).toEqual(ids);
    // The last is due first now, so that places and times disagree.
    await stage.pool.query(
      `update waybill.delivery_queue q set due_at = now() - o.place * interval '1 ms'
       from unnest($1::uuid[]) with ordinality as o (id, place) where q.delivery_id = o.id`,
      [ids],
    );
    const claimed: string[] = [];
    for (let turn = 0; turn < 3; turn += 1) claimed.push(...idsOf(await claim(stage, session!, 20)));
    expect(claimed).toEqual(ids.toReversed());
  });

  it('[row 19] skip a row that an open transaction has locked, without waiting for it', async ({
    onTestFinished,
  }) => {
    const stage = await openStage(onTestFinished);
    const [holder, claimer] = await openSessions(stage, 2, onTestFinished);
    const [locked, free] = await stage.publish(2, { hint: false });
    await holder!.query('begin');
    await holder!.query('select from waybill.delivery_queue where delivery_id = $1 for update', [
      locked!.deliveryId,
    ]);
    // Without `skip locked` this would end in an error, and not only late.
    await claimer!.query(`set lock_timeout = '4s'`);
    expect(idsOf(await claim(stage, claimer!, 2))).toEqual([free!.deliveryId]);
    await holder!.query('rollback');
    expect(idsOf(await claim(stage, claimer!, 2))).toEqual([locked!.deliveryId]);
  });

  it('[row 20] leave a live lease alone, take it after its end, and of two racers one wins', async ({
    onTestFinished,
  }) => {
    const stage = await openStage(onTestFinished);
    const [first, second] = await openSessions(stage, 2, onTestFinished);
    const [delivery] = await stage.publish(1, { hint: false });
    expect(idsOf(await claim(stage, first!, 1))).toEqual([delivery!.deliveryId]);
    expect(await findLapsedClaims(second!, { from: 0, until: 1_000 }, 10)).toEqual([]);
    expect(idsOf(await claim(stage, second!, 1))).toEqual([]);
    for (let round = 0; round < 20; round += 1) {
      await lapse(stage);
      const race = await Promise.all([first!, second!].map((session) => reapAndClaim(stage, session)));
      expect(race.map(({ reaped }) => reaped).toSorted((a, b) => a - b)).toEqual([0, 1]);
      // Who lost the reaping may have claimed before it was through: then the row is still there to be claimed.
      const late = await claim(stage, first!, 1);
      expect([...race.flatMap(({ claimed }) => claimed), ...idsOf(late)]).toEqual([delivery!.deliveryId]);
    }
    const { rows } = await stage.pool.query('select attempt_count from waybill.delivery_queue');
    expect(rows).toEqual([{ attempt_count: 21 }]);
  });

  it.for(['succeeded', 'failed'] as const)(
    '[row 22] [row 23] keep the newer claim untouched by a late %s, whose attempt stays in history',
    async (result, { onTestFinished }) => {
      const stage = await openStage(onTestFinished);
      const [a, b] = await openSessions(stage, 2, onTestFinished);
      await stage.publish(1, { hint: false });
      const [ofA] = (await claim(stage, a!, 1)).deliveries;
      await lapse(stage);
      expect(await reapAndClaim(stage, b!)).toEqual({ reaped: 1, claimed: [ofA!.deliveryId] });
      const [queued, delivery] = [await readQueue(stage), await readDelivery(stage)];

      const dead = { state: 'dead', reason: 'exhausted' } as const;
      for (const outcome of result === 'succeeded' ? [undefined] : [undefined, dead])
        expect((await recordAttempts(a!, [settleClaim(ofA!, result, outcome)])).moved).toEqual(new Set());

      expect(await readQueue(stage)).toEqual(queued);
      expect(await readDelivery(stage)).toEqual(delivery);
      expect(delivery).toMatchObject({ state: 'failed', dead_letters: 0 });
      expect(await readAttempts(stage)).toEqual([{ number: 1, outcome: result }]);
    },
  );

  it('[row 23] record two requests of one delivery at the same time as attempts 1 and 2', async ({
    onTestFinished,
  }) => {
    const stage = await openStage(onTestFinished);
    const [a, b] = await openSessions(stage, 2, onTestFinished);
    await stage.publish(1, { hint: false });
    const [ofA] = (await claim(stage, a!, 1)).deliveries;
    await lapse(stage);
    await reapAndClaim(stage, b!);
    const { rows } = await stage.pool.query('select claim_token from waybill.delivery_queue');
    const ofB = { ...ofA!, claimToken: rows[0].claim_token, attemptNumber: 2 };
    const [movedByA, movedByB] = await Promise.all([
      recordAttempts(a!, [settleClaim(ofA!, 'failed')]),
      recordAttempts(b!, [settleClaim(ofB, 'succeeded')]),
    ]);
    expect([movedByA.moved.size, movedByB.moved.size]).toEqual([0, 1]);
    expect(await readAttempts(stage)).toEqual([
      { number: 1, outcome: 'failed' },
      { number: 2, outcome: 'succeeded' },
    ]);
    expect(await readDelivery(stage)).toMatchObject({ state: 'succeeded', attempt_count: 2 });
  });

  it('[row 22] never replace an attempt that was made by a lapsed lease, nor one result by another', async ({
    onTestFinished,
  }) => {
    const stage = await openStage(onTestFinished);
    const [session] = await openSessions(stage, 1, onTestFinished);
    await stage.publish(1, { hint: false });
    const [claimed] = (await claim(stage, session!, 1)).deliveries;
    await recordAttempts(session!, [settleClaim(claimed!, 'succeeded')]);
    for (const later of ['lease_expired', 'failed'] as const) {
      expect((await recordAttempts(session!, [settleClaim(claimed!, later)])).moved).toEqual(new Set());
      expect(await readAttempts(stage)).toEqual([{ number: 1, outcome: 'succeeded' }]);
      expect(await readDelivery(stage)).toMatchObject({ state: 'succeeded', dead_letters: 0 });
    }
  });
});

/** What a dispatcher does with a lapsed lease: reap it under its token, then claim what is due. */
async function reapAndClaim(stage: Stage, session: Client): Promise<{ reaped: number; claimed: string[] }> {
  const lapsed = await findLapsedClaims(session, { from: 0, until: 1_000 }, 10);
  const { moved } = await recordAttempts(
    session,
    lapsed.map((found) => settleClaim(found, 'lease_expired')),
  );
  return { reaped: moved.size, claimed: idsOf(await claim(stage, session, 1)) };
}

async function readDelivery(stage: Stage): Promise<unknown> {
  const { rows } = await stage.pool.query(
    `select d.*, (select count(*)::integer from waybill.dead_letters) as dead_letters from waybill.deliveries d`,
  );
  return rows[0];
}

async function readAttempts(stage: Stage): Promise<unknown[]> {
  return (await stage.pool.query('select number, outcome from waybill.attempts order by number')).rows;
}
