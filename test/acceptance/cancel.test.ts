import { randomUUID } from 'node:crypto';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { cancelDelivery, claimDeliveries } from '#outbox';

import type { ApiResponse } from '../support/api-client.js';
import { expectProblem } from '../support/expect-problem.js';
import { expectStatus, openPlatform, type Platform, type ShownEndpoint } from '../support/platform.js';
import { tenantRows } from '../support/row-counts.js';
import { createTenantWithKey } from '../support/tenant.js';
import { waitFor } from '../support/wait-for.js';

interface Shown {
  readonly id: string;
  readonly endpoint_id: string;
  readonly state: string;
  readonly attempt_count: number;
  readonly next_attempt_at: string | null;
  readonly finished_at: string | null;
}

interface CancelledEvent {
  readonly id: string;
  readonly deliveries: readonly { readonly id: string; readonly state: string; readonly result: string }[];
}

// No dispatcher runs here: what moves is moved by the tests.
let platform: Platform;
let endpoint: ShownEndpoint;
beforeAll(async () => {
  platform = await openPlatform();
  await platform.bootApi();
  endpoint = await platform.addEndpoint('http://127.0.0.1:8080/hook', { event_types: ['order.*'] });
});
afterAll(() => platform.close());

/** The uuid inside a prefixed id; PostgreSQL reads it without its dashes. */
const uuidOf = (id: string): string => id.slice(id.indexOf('_') + 1);

async function publishOne(): Promise<string> {
  return (await platform.publish({ order: 1 })).deliveries[0]!.id;
}

function cancel(delivery: string, body?: object): Promise<ApiResponse<Shown>> {
  return platform.client.post<Shown>(`/v1/deliveries/${delivery}/cancel`, body);
}

function expectRefused(answer: ApiResponse<unknown>, state: string): void {
  const problem = expectProblem(answer, 409, 'delivery_not_cancellable');
  expect(problem.details).toEqual([{ field: 'state', reason: state }]);
  expect(problem.detail).toContain(state);
}

/** Everything due of one endpoint, as a dispatcher claims it. */
function claim(endpointId = endpoint.id) {
  const quota = {
    tenantId: platform.tenant.tenantId,
    endpointId: uuidOf(endpointId),
    quota: 100,
    watermarkMs: 0,
  };
  return claimDeliveries(platform.pool, [quota], { claimToken: randomUUID(), leaseMs: 60_000 });
}

async function stored(delivery: string): Promise<object> {
  const { rows } = await platform.pool.query(
    `select state, attempt_count, cycle_attempt_count, finished_at is not null as finished,
       (select count(*)::integer from waybill.delivery_queue q where q.delivery_id = d.id) as queued
     from waybill.deliveries d where id = $1::uuid`,
    [uuidOf(delivery)],
  );
  return rows[0];
}

/** Resolves when a session of the api waits for a lock. */
function untilApiWaits(): Promise<unknown> {
  return waitFor(
    async () =>
      (
        await platform.pool.query(
          `select from pg_stat_activity
           where datname = current_database() and application_name like 'waybill-api%' and wait_event_type = 'Lock'`,
        )
      ).rowCount,
    { what: 'the api to wait for a lock' },
  );
}

describe('a delivery that waits', () => {
  it('is cancelled by one of six at once, and the five others are told that it is', async () => {
    const delivery = await publishOne();
    const answers = await Promise.all(Array.from({ length: 6 }, () => cancel(delivery)));
    expect(answers.map(({ status }) => status).toSorted((one, other) => one - other)).toEqual([
      200, 409, 409, 409, 409, 409,
    ]);
    for (const answer of answers) if (answer.status !== 200) expectRefused(answer, 'cancelled');
    const shown = answers.find(({ status }) => status === 200)!.body;
    expect(shown).toMatchObject({
      id: delivery,
      state: 'cancelled',
      attempt_count: 0,
      next_attempt_at: null,
    });
    expect(Math.abs(Date.parse(shown.finished_at!) - Date.now())).toBeLessThan(30_000);
    expect((await claim()).deliveries).toEqual([]);
  });

  it('keeps the attempts it was tried with, also behind a paused endpoint, and goes on from them when replayed', async () => {
    const delivery = await publishOne();
    await platform.pool.query(
      `with tried as (update waybill.delivery_queue set attempt_count = 7, cycle_attempt_count = 2 where delivery_id = $1::uuid)
       update waybill.deliveries set state = 'failed', attempt_count = 6, cycle_attempt_count = 1 where id = $1::uuid`,
      [uuidOf(delivery)],
    );
    expectStatus(await platform.client.patch(`/v1/endpoints/${endpoint.id}`, { status: 'paused' }), 200);
    expect(await platform.readDelivery(delivery)).toMatchObject({ state: 'held', attempt_count: 7 });
    expect(expectStatus(await cancel(delivery, {}), 200)).toMatchObject({
      state: 'cancelled',
      attempt_count: 7,
    });
    expect(await stored(delivery)).toEqual({
      state: 'cancelled',
      attempt_count: 7,
      cycle_attempt_count: 2,
      finished: true,
      queued: 0,
    });
    expectStatus(await platform.client.patch(`/v1/endpoints/${endpoint.id}`, { status: 'enabled' }), 200);
    expectStatus(await platform.client.post(`/v1/deliveries/${delivery}/replay`, {}), 202);
    const { deliveries } = await claim();
    expect(deliveries).toMatchObject([{ attemptNumber: 8, cycleAttemptNumber: 1 }]);
  });
});

describe('a delivery that is claimed', () => {
  it('is left to its worker, also when the lease has lapsed', async () => {
    const delivery = await publishOne();
    expect((await claim()).deliveries).toHaveLength(1);
    expectRefused(await cancel(delivery), 'in_progress');
    await platform.pool.query(
      `update waybill.delivery_queue set lease_until = now() - interval '1 hour' where delivery_id = $1::uuid`,
      [uuidOf(delivery)],
    );
    expectRefused(await cancel(delivery), 'in_progress');
    expect(await stored(delivery)).toMatchObject({ state: 'pending', queued: 1 });
  });

  it('while it is being cancelled stays claimed: the cancel waits for the claim, and is refused', async () => {
    const delivery = await publishOne();
    const claiming = await platform.pool.connect();
    try {
      await claiming.query('begin');
      await claiming.query(
        `update waybill.delivery_queue
         set lease_until = now() + interval '1 minute', claim_token = gen_random_uuid(), attempt_count = 1, cycle_attempt_count = 1
         where delivery_id = $1::uuid`,
        [uuidOf(delivery)],
      );
      const answer = cancel(delivery);
      await untilApiWaits();
      await claiming.query('commit');
      expectRefused(await answer, 'in_progress');
    } finally {
      claiming.release();
    }
    expect(await stored(delivery)).toMatchObject({ state: 'pending', queued: 1 });
  });

  it('after a cancel took it is not claimed: the claim passes over it', async () => {
    const delivery = await publishOne();
    const cancelling = await platform.pool.connect();
    try {
      await cancelling.query('begin');
      const result = await cancelDelivery(cancelling, platform.tenant.tenantId, uuidOf(delivery));
      expect(result).toEqual({ kind: 'cancelled' });
      expect((await claim()).deliveries).toEqual([]);
      await cancelling.query('commit');
    } finally {
      cancelling.release();
    }
    expect((await claim()).deliveries).toEqual([]);
    expect(await stored(delivery)).toMatchObject({ state: 'cancelled', queued: 0 });
  });
});

it.each(['succeeded', 'dead'])('a delivery that is %s is not cancelled', async (state) => {
  const delivery = await publishOne();
  await platform.pool.query(
    `with gone as (delete from waybill.delivery_queue where delivery_id = $1::uuid)
     update waybill.deliveries set state = $2, finished_at = now() where id = $1::uuid`,
    [uuidOf(delivery), state],
  );
  const before = await stored(delivery);
  expectRefused(await cancel(delivery), state);
  expect(await stored(delivery)).toEqual(before);
});

describe('an event', () => {
  const cancelEvent = (id: string) => platform.client.post<CancelledEvent>(`/v1/events/${id}/cancel`);

  it('is cancelled delivery by delivery, and says what became of each', async () => {
    const to = await Promise.all(
      [1, 2, 3].map((port) =>
        platform.addEndpoint(`http://127.0.0.1:808${port}/`, { event_types: ['many.made'] }),
      ),
    );
    const event = await platform.publish({ order: 1 }, 'many.made');
    const of = (at: number) => event.deliveries.find(({ endpoint_id: id }) => id === to[at]!.id)!.id;
    expect((await claim(to[1]!.id)).deliveries).toHaveLength(1);
    await platform.pool.query(
      `with gone as (delete from waybill.delivery_queue where delivery_id = $1::uuid)
       update waybill.deliveries set state = 'succeeded', finished_at = now() where id = $1::uuid`,
      [uuidOf(of(2))],
    );
    const outcome = async () => {
      const { id, deliveries } = expectStatus(await cancelEvent(event.id), 200);
      expect(id).toBe(event.id);
      return [0, 1, 2].map((at) => {
        const { state, result } = deliveries.find(({ id: delivery }) => delivery === of(at))!;
        return `${state}: ${result}`;
      });
    };
    expect(await outcome()).toEqual([
      'cancelled: cancelled',
      'in_progress: in_progress',
      'succeeded: finished',
    ]);
    expect(await stored(of(0))).toMatchObject({ state: 'cancelled', finished: true, queued: 0 });
    expect(await stored(of(1))).toMatchObject({ state: 'pending', queued: 1 });
    expect(await outcome()).toEqual([
      'cancelled: already_cancelled',
      'in_progress: in_progress',
      'succeeded: finished',
    ]);
  });

  it('of which nothing can be cancelled is refused with the state of each delivery', async () => {
    const event = await platform.publish({ order: 1 });
    await claim();
    const problem = expectProblem(await cancelEvent(event.id), 409, 'event_not_cancellable');
    expect(problem.details).toEqual([{ field: event.deliveries[0]!.id, reason: 'in_progress' }]);
    const toNobody = await platform.publish({ order: 1 }, 'nobody.listens');
    expect(
      expectProblem(await cancelEvent(toNobody.id), 409, 'event_not_cancellable').details,
    ).toBeUndefined();
    expectProblem(await cancelEvent(`evt_${'0'.repeat(32)}`), 404, 'event_not_found');
  });

  it('whose deliveries six cancel at once is cancelled once, without a deadlock', async () => {
    await Promise.all(
      Array.from({ length: 8 }, (_, index) =>
        platform.addEndpoint(`http://127.0.0.1:809${index}/`, { event_types: ['wide.made'] }),
      ),
    );
    const event = await platform.publish({ order: 1 }, 'wide.made');
    const answers = await Promise.all(Array.from({ length: 6 }, () => cancelEvent(event.id)));
    const results = answers.flatMap((answer) =>
      expectStatus(answer, 200).deliveries.map(({ result }) => result),
    );
    expect(results.filter((result) => result === 'cancelled')).toHaveLength(8);
    expect(results.filter((result) => result === 'already_cancelled')).toHaveLength(40);
  });
});

describe('a route without fields', () => {
  it.each([
    [{ reason: 'typo' }, 422, 'unknown_field'],
    [[], 422, 'validation_failed'],
    ['{', 400, 'invalid_json'],
    ['{"a":1,"a":1}', 400, 'duplicate_field'],
  ])('refuses the body %j with %i %s and changes nothing', async (body, status, code) => {
    const { id, deliveries } = await platform.publish({ order: 1 });
    const delivery = deliveries[0]!.id;
    const before = await tenantRows(platform.pool, platform.tenant.tenantId);
    for (const path of [
      `/v1/deliveries/${delivery}/cancel`,
      `/v1/deliveries/${delivery}/replay`,
      `/v1/events/${id}/cancel`,
    ]) {
      expectProblem(await platform.client.post(path, body), status, code);
    }
    expect(await tenantRows(platform.pool, platform.tenant.tenantId)).toEqual(before);
  });

  it('refuses ids of another kind, and a key without its scope', async () => {
    const { id, deliveries } = await platform.publish({ order: 1 });
    const delivery = deliveries[0]!.id;
    for (const path of [
      `/v1/deliveries/${id}/cancel`,
      `/v1/events/${delivery}/cancel`,
      '/v1/deliveries/x/explain',
    ]) {
      const answer = path.endsWith('explain') ? platform.client.get(path) : platform.client.post(path);
      expectProblem(await answer, 400, 'invalid_id');
    }
    const reader = await createTenantWithKey(platform.databaseUrl, { scopes: ['deliveries:read'] });
    const client = reader.clientOf(platform.apps[0]!.url);
    for (const path of [
      `/v1/deliveries/${delivery}/cancel`,
      `/v1/events/${id}/cancel`,
      `/v1/events/${id}/deliveries`,
    ]) {
      expectProblem(await client.post(path), 403, 'insufficient_scope');
    }
    expectProblem(await client.get(`/v1/deliveries/${delivery}/explain`), 404, 'delivery_not_found');
  });
});
