import { randomUUID } from 'node:crypto';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { measureQueue } from '#outbox';

import type { ApiResponse } from '../support/api-client.js';
import { expectProblem } from '../support/expect-problem.js';
import {
  BRISK,
  expectStatus,
  openPlatform,
  type Platform,
  type ShownEndpoint,
  type ShownEvent,
} from '../support/platform.js';
import { rowCounts } from '../support/row-counts.js';
import { createTenantWithKey } from '../support/tenant.js';

interface Explained {
  readonly delivery_id: string;
  readonly event_id: string;
  readonly endpoint_id: string;
  readonly state: string;
  readonly reason: string;
  readonly summary: string;
  readonly blocked_by: readonly { readonly code: string; readonly until: string | null }[];
  readonly next_attempt_at: string | null;
  readonly earliest_attempt_at: string | null;
  readonly deliveries_ahead: number | null;
  readonly attempt_count: number;
  readonly last_attempt: { readonly number: number; readonly status_code: number | null } | null;
  readonly evaluated_at: string;
}

interface Listed {
  readonly data: readonly {
    readonly id: string;
    readonly state: string;
    readonly dead_reason: string | null;
  }[];
}

let platform: Platform;
beforeAll(async () => {
  platform = await openPlatform();
  await platform.bootApi();
});
afterAll(() => platform.close());

/** The uuid inside a prefixed id; PostgreSQL reads it without its dashes. */
const uuidOf = (id: string): string => id.slice(id.indexOf('_') + 1);

async function explain(delivery: string): Promise<Explained> {
  return expectStatus(await platform.client.get<Explained>(`/v1/deliveries/${delivery}/explain`), 200);
}

describe('why a delivery is where it is', () => {
  let endpoint: ShownEndpoint;
  let event: ShownEvent;
  let delivery: string;
  beforeAll(async () => {
    endpoint = await platform.addEndpoint('http://127.0.0.1:8080/hook', { event_types: ['order.explained'] });
    event = await platform.publish({ order: 1 }, 'order.explained');
    delivery = event.deliveries[0]!.id;
  });

  /** Runs the statements at once; they see the delivery as $1, its endpoint as $2 and its tenant as $3. */
  async function plant(...statements: readonly string[]): Promise<void> {
    const ids = [uuidOf(delivery), uuidOf(endpoint.id), platform.tenant.tenantId];
    const text = statements
      .join(';\n')
      .replaceAll(/\$([123])/g, (_, at: string) => `'${ids[Number(at) - 1]}'::uuid`);
    await platform.pool.query(text);
  }

  const DISPATCHER = `insert into waybill.replicas (id, started_at, heartbeat_at) values (gen_random_uuid(), now(), now())`;
  const OPEN = `insert into waybill.circuits (tenant_id, endpoint_id, state, consecutive_failures, open_until)
    values ($3, $2, 'open', 5, now() + interval '40 seconds')`;
  const RESTORE = [
    'delete from waybill.replicas',
    'delete from waybill.circuits',
    'delete from waybill.rate_tokens',
    'delete from waybill.dead_letters',
    'delete from waybill.attempts',
    `update waybill.endpoints set status = 'enabled', disabled_reason = null, deleted_at = null, rate_per_second = null,
       concurrency = null, circuit_failures = null where id = $2`,
    `update waybill.deliveries set state = 'pending', attempt_count = 0, finished_at = null where id = $1`,
    `insert into waybill.delivery_queue (tenant_id, event_id, endpoint_id, delivery_id, due_at, expires_at, payload_bytes)
     select tenant_id, event_id, endpoint_id, id, created_at, expires_at, 1 from waybill.deliveries where id = $1
     on conflict (tenant_id, event_id, endpoint_id) do update
     set due_at = excluded.due_at, lease_until = null, claim_token = null, attempt_count = 0`,
  ];
  const ended = (state: string): string[] => [
    'delete from waybill.delivery_queue where delivery_id = $1',
    `update waybill.deliveries set state = '${state}', finished_at = now() where id = $1`,
  ];

  it.each<[reason: string, state: string, ...planted: string[]]>([
    ['no_dispatcher', 'pending'],
    [
      'no_dispatcher',
      'pending',
      DISPATCHER,
      `update waybill.replicas set heartbeat_at = now() - interval '16 seconds'`,
    ],
    ['due', 'pending', DISPATCHER],
    ['dispatcher_slots_full', 'pending', DISPATCHER, 'update waybill.replicas set slots_full = true'],
    ['due', 'pending', DISPATCHER, 'update waybill.replicas set slots_full = true', DISPATCHER],
    [
      'tenant_at_cap',
      'pending',
      DISPATCHER,
      'update waybill.replicas set tenants_at_cap = array[gen_random_uuid(), $3]',
    ],
    ['endpoint_at_cap', 'pending', DISPATCHER, 'update waybill.replicas set endpoints_at_cap = array[$2]'],
    [
      'due',
      'pending',
      DISPATCHER,
      'update waybill.replicas set endpoints_at_cap = array[$3], tenants_at_cap = array[$2]',
    ],
    [
      'rate_limited',
      'pending',
      DISPATCHER,
      'update waybill.endpoints set rate_per_second = 0.01 where id = $2',
      'insert into waybill.rate_tokens (tenant_id, endpoint_id, tokens, refilled_at) values ($3, $2, 0, now())',
    ],
    ['circuit_open', 'held', DISPATCHER, OPEN],
    [
      'circuit_probing',
      'held',
      DISPATCHER,
      OPEN,
      `update waybill.circuits set probe_token = gen_random_uuid(), probe_until = now() + interval '1 minute'`,
    ],
    ['due', 'pending', DISPATCHER, OPEN, 'update waybill.endpoints set circuit_failures = 0 where id = $2'],
    [
      'retry_after',
      'held',
      DISPATCHER,
      `insert into waybill.circuits (tenant_id, endpoint_id, held_until) values ($3, $2, now() + interval '1 minute')`,
    ],
    [
      'due',
      'pending',
      DISPATCHER,
      `insert into waybill.circuits (tenant_id, endpoint_id, held_until) values ($3, $2, now() - interval '1 second')`,
    ],
    ['endpoint_paused', 'held', DISPATCHER, `update waybill.endpoints set status = 'paused' where id = $2`],
    [
      'endpoint_disabled',
      'held',
      DISPATCHER,
      `update waybill.endpoints set status = 'disabled', disabled_reason = 'gone' where id = $2`,
    ],
    [
      'endpoint_deleted',
      'pending',
      DISPATCHER,
      OPEN,
      'update waybill.endpoints set deleted_at = now() where id = $2',
    ],
    [
      'scheduled',
      'failed',
      DISPATCHER,
      `update waybill.deliveries set state = 'failed', attempt_count = 1 where id = $1`,
      `update waybill.delivery_queue set attempt_count = 1, due_at = now() + interval '1 hour' where delivery_id = $1`,
      `insert into waybill.attempts (tenant_id, event_id, endpoint_id, number, outcome, status_code, endpoint_revision, started_at, duration_ms)
       select tenant_id, event_id, endpoint_id, number, 'failed', 500 + number, 1, now(), 12
       from waybill.deliveries, generate_series(1, 2) number where id = $1`,
    ],
    [
      'in_progress',
      'in_progress',
      DISPATCHER,
      `update waybill.delivery_queue set attempt_count = 1, claim_token = gen_random_uuid(), lease_until = now() + interval '1 minute'
       where delivery_id = $1`,
    ],
    [
      'lease_lapsed',
      'in_progress',
      DISPATCHER,
      `update waybill.delivery_queue set attempt_count = 1, claim_token = gen_random_uuid(), lease_until = now() - interval '1 minute'
       where delivery_id = $1`,
    ],
    ['not_queued', 'pending', DISPATCHER, 'delete from waybill.delivery_queue where delivery_id = $1'],
    ['succeeded', 'succeeded', ...ended('succeeded')],
    ['cancelled', 'cancelled', ...ended('cancelled')],
    [
      'dead_rejected',
      'dead',
      ...ended('dead'),
      `insert into waybill.dead_letters (tenant_id, event_id, endpoint_id, delivery_id, reason, attempt_count, died_at)
       select tenant_id, event_id, endpoint_id, id, 'rejected', 1, now() from waybill.deliveries where id = $1`,
    ],
  ])('is %s, and it is shown as %s everywhere', async (reason, state, ...planted) => {
    await plant(...RESTORE, ...planted);
    const explained = await explain(delivery);
    expect(explained).toMatchObject({
      reason,
      state,
      delivery_id: delivery,
      event_id: event.id,
      endpoint_id: endpoint.id,
    });
    expect(explained.summary).toMatch(/^[A-Z].*\.$/);
    const shown = await platform.readDelivery(delivery);
    const deadReason = reason.startsWith('dead_') ? reason.slice('dead_'.length) : null;
    expect(shown).toMatchObject({
      state,
      next_attempt_at: explained.next_attempt_at,
      attempt_count: explained.attempt_count,
      dead_reason: deadReason,
    });
    expect(explained.last_attempt?.number ?? 0).toBe(shown.attempts.at(-1)?.number ?? 0);
    const path = `/v1/deliveries?endpoint_id=${endpoint.id}&state=${state}`;
    const { data } = expectStatus(await platform.client.get<Listed>(path), 200);
    // What a lost queue row has lost is what is owed.
    const listed = reason === 'not_queued' ? [] : [{ id: delivery, state, dead_reason: deadReason }];
    expect(data).toMatchObject(listed);
    expect(data).toHaveLength(listed.length);
    const whole = expectStatus(
      await platform.client.get<{ deliveries: Listed['data'] }>(`/v1/events/${event.id}`),
      200,
    );
    expect(whole.deliveries).toMatchObject([{ state }]);
    const measured = await measureQueue(platform.pool);
    expect(measured.held).toBe(state === 'held' ? 1 : 0);
    const isDue = ['pending', 'failed'].includes(state) && reason !== 'scheduled' && reason !== 'not_queued';
    expect([measured.due, measured.oldestDueAgeSeconds > 0]).toEqual(isDue ? [1, true] : [0, false]);
  });

  it('counts what is due before it, and leaves the backlog of a suspended tenant out of what is due', async () => {
    await plant(...RESTORE, DISPATCHER);
    const second = await platform.publish({ order: 2 }, 'order.explained');
    const { deliveries_ahead: ahead, summary } = await explain(second.deliveries[0]!.id);
    expect(ahead).toBe(1);
    expect(summary).toContain('1 delivery is ahead of it');
    expect((await explain(delivery)).deliveries_ahead).toBe(0);
    await platform.pool.query('update waybill.tenants set suspended_at = now()');
    expectProblem(await platform.client.get(`/v1/deliveries/${delivery}/explain`), 403, 'tenant_suspended');
    expect(await measureQueue(platform.pool)).toMatchObject({ held: 2, due: 0, oldestDueAgeSeconds: 0 });
    await platform.pool.query('update waybill.tenants set suspended_at = null');
  });
});

describe('an event delivered to an endpoint that did not get it', () => {
  const add = (event: string, body: object): Promise<ApiResponse<{ id: string; state: string }>> =>
    platform.client.post(`/v1/events/${event}/deliveries`, body);
  const addTarget = (fields: object = {}) =>
    platform.addEndpoint('http://127.0.0.1:8081/hook', { event_types: ['nothing.like.it'], ...fields });

  async function counted(event: string): Promise<object> {
    const { rows } = await platform.pool.query(
      `select target_count as targets,
         (select count(*)::integer from waybill.deliveries d where d.event_id = e.id) as deliveries,
         (select count(*)::integer from waybill.delivery_queue q where q.event_id = e.id) as queued
       from waybill.events e where id = $1::uuid`,
      [uuidOf(event)],
    );
    return rows[0];
  }

  it('is owed one delivery more, made by one of six at once', async () => {
    const event = await platform.publish({ order: 1 }, 'order.unheard');
    expect(await counted(event.id)).toEqual({ targets: 0, deliveries: 0, queued: 0 });
    const [one, other] = await Promise.all([addTarget(), addTarget({ status: 'paused' })]);
    const answers = await Promise.all(
      Array.from({ length: 6 }, () => add(event.id, { endpoint_id: one.id })),
    );
    expect(answers.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([
      201, 409, 409, 409, 409, 409,
    ]);
    const made = answers.find(({ status }) => status === 201)!;
    expect(made.body).toMatchObject({
      event_id: event.id,
      endpoint_id: one.id,
      state: 'pending',
      attempt_count: 0,
    });
    expect(made.headers['location']).toBe(`/v1/deliveries/${made.body.id}`);
    for (const answer of answers.filter(({ status }) => status === 409)) {
      expect(expectProblem(answer, 409, 'delivery_exists').details).toEqual([
        { field: 'delivery_id', reason: made.body.id },
        { field: 'state', reason: 'pending' },
      ]);
    }
    expect(expectStatus(await add(event.id, { endpoint_id: other.id }), 201)).toMatchObject({
      state: 'held',
    });
    expect(await counted(event.id)).toEqual({ targets: 2, deliveries: 2, queued: 2 });
    expectStatus(await platform.client.post(`/v1/deliveries/${made.body.id}/cancel`), 200);
    expectProblem(await add(event.id, { endpoint_id: one.id }), 409, 'delivery_exists');
  });

  it('waits for the event’s not_before, and lives as long as the endpoint says', async () => {
    await platform.pool.query('delete from waybill.replicas');
    const notBefore = new Date(Date.now() + 3_600_000);
    const answer = await platform.client.publish<ShownEvent>(
      'order.unheard',
      {},
      { notBefore: notBefore.toISOString() },
    );
    const event = expectStatus(answer, 201);
    const endpoint = await addTarget();
    await platform.pool.query('update waybill.endpoints set max_age_ms = 60000 where id = $1::uuid', [
      uuidOf(endpoint.id),
    ]);
    const { id } = expectStatus(await add(event.id, { endpoint_id: endpoint.id }), 201);
    expect(await platform.readDelivery(id)).toMatchObject({
      next_attempt_at: notBefore.toISOString(),
      expires_at: new Date(notBefore.getTime() + 60_000).toISOString(),
    });
    expect(await explain(id)).toMatchObject({
      blocked_by: [{ code: 'no_dispatcher' }, { code: 'not_before', until: notBefore.toISOString() }],
      earliest_attempt_at: null,
    });
    expectStatus(await platform.client.post(`/v1/deliveries/${id}/cancel`), 200);
    expectStatus(await platform.client.post(`/v1/deliveries/${id}/replay`), 202);
    const { rows } = await platform.pool.query<{ age: number }>(
      'select extract(epoch from expires_at - due_at)::integer as age from waybill.delivery_queue where delivery_id = $1::uuid',
      [uuidOf(id)],
    );
    expect(rows).toEqual([{ age: 60 }]);
  });

  it('[row 67] is refused for endpoints that cannot take it or are not there, and nothing is stored', async () => {
    const event = await platform.publish({ order: 1 }, 'order.unheard');
    const [disabled, deleted, enabled] = await Promise.all([
      addTarget({ status: 'disabled' }),
      addTarget(),
      addTarget(),
    ]);
    await platform.client.delete(`/v1/endpoints/${deleted.id}`);
    const stranger = await createTenantWithKey(platform.databaseUrl);
    const strange = stranger.clientOf(platform.apps[0]!.url);
    const foreign = expectStatus(
      await strange.post<{ id: string }>('/v1/endpoints', { url: 'http://127.0.0.1:8082/' }),
      201,
    );
    const unknown = randomUUID().replaceAll('-', '');
    const before = await rowCounts(platform.pool);
    const to = (endpoint: string) => add(event.id, { endpoint_id: endpoint });
    expectProblem(await to(disabled.id), 409, 'endpoint_disabled');
    expectProblem(await to(deleted.id), 409, 'endpoint_deleted');
    expectProblem(await to(foreign.id), 404, 'endpoint_not_found');
    expectProblem(await to(`ep_${unknown}`), 404, 'endpoint_not_found');
    expectProblem(await to(event.id), 400, 'invalid_id');
    expectProblem(await add(`evt_${unknown}`, { endpoint_id: enabled.id }), 404, 'event_not_found');
    const foreignEvent = `/v1/events/${event.id}/deliveries`;
    expectProblem(await strange.post(foreignEvent, { endpoint_id: foreign.id }), 404, 'event_not_found');
    expectProblem(await add(event.id, { endpoint_id: enabled.id, url: 'x' }), 422, 'unknown_field');
    for (const body of [{}, { endpoint_id: null }, { endpoint_id: 7 }, []]) {
      expectProblem(await add(event.id, body), 422, 'validation_failed');
    }
    expect(await rowCounts(platform.pool)).toEqual(before);
    expect(await counted(event.id)).toMatchObject({ targets: 0, deliveries: 0 });
  });
});

it('[row 47] a paused endpoint gets nothing, and its backlog within 5 s of its resumption, though polls are rare', async () => {
  await platform.pool.query('delete from waybill.delivery_queue');
  const [receiver, bystander] = await Promise.all([platform.startReceiver(), platform.startReceiver()]);
  const endpoint = await platform.addEndpoint(receiver.url, { event_types: ['order.piled'] });
  await platform.addEndpoint(bystander.url, { event_types: ['order.piled'] });
  await platform.bootDispatcher({ ...BRISK, WAYBILL_POLL_MS: '60000' });
  expectStatus(await platform.client.patch(`/v1/endpoints/${endpoint.id}`, { status: 'paused' }), 200);
  const events = await Promise.all(
    Array.from({ length: 20 }, (_, order) => platform.publish({ order }, 'order.piled')),
  );
  await bystander.waitFor(20);
  expect(receiver.requests).toHaveLength(0);
  const held = events[0]!.deliveries.find(({ endpoint_id: to }) => to === endpoint.id)!.id;
  expect(await platform.readDelivery(held)).toMatchObject({ state: 'held', attempt_count: 0 });
  expectStatus(await platform.client.patch(`/v1/endpoints/${endpoint.id}`, { status: 'enabled' }), 200);
  await receiver.waitFor(20, 5_000);
  await platform.untilState(held, 'succeeded');
  expect(new Set(receiver.uniqueDeliveries()).size).toBe(20);
});
