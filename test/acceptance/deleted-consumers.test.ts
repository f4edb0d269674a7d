import { acceptEvents } from '#outbox';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { expectProblem } from '../support/expect-problem.js';
import { expectStatus, openPlatform, type Platform, type ShownEvent } from '../support/platform.js';
import type { Receiver } from '../support/receiver.js';
import { waitFor } from '../support/wait-for.js';

let platform: Platform;
let receiver: Receiver;
let consumers = 0;

beforeAll(async () => {
  platform = await openPlatform();
  await platform.bootApi();
  await platform.bootDispatcher();
  receiver = await platform.startReceiver();
});
afterAll(() => platform.close());

interface Consumer {
  readonly uid: string;
  readonly id: string;
  readonly endpointIds: readonly string[];
}

/** A consumer with endpoints of its own, each taking one request at a time. */
async function openConsumer(endpoints = 1): Promise<Consumer> {
  const uid = `customer ${(consumers += 1)}`;
  const { id } = expectStatus(await platform.client.post<{ id: string }>('/v1/consumers', { uid }), 201);
  const endpointIds: string[] = [];
  for (let number = 0; number < endpoints; number += 1) {
    const fields = { consumer: id, concurrency: 1, rate_per_second: 1_000 };
    endpointIds.push((await platform.addEndpoint(`${receiver.url}/${consumers}/${number}`, fields)).id);
  }
  return { uid, id, endpointIds };
}

async function publishTo(consumer: string, payload: object = {}): Promise<ShownEvent> {
  return expectStatus(await platform.client.publish<ShownEvent>('order.created', payload, { consumer }), 201);
}

async function deleteConsumer(id: string): Promise<void> {
  expect((await platform.client.delete(`/v1/consumers/${id}`)).status).toBe(204);
}

async function statesOf({ id }: Consumer): Promise<Record<string, number>> {
  const { rows } = await platform.pool.query<{ state: string; count: number }>(
    `select d.state, count(*)::integer from waybill.deliveries d
     join waybill.endpoints p on p.tenant_id = d.tenant_id and p.id = d.endpoint_id
     where p.consumer_id = $1 group by d.state`,
    [id.slice('con_'.length)],
  );
  return Object.fromEntries(rows.map(({ state, count }) => [state, count]));
}

describe('a consumer that is deleted', () => {
  it.each([
    ['succeeded', 200, { succeeded: 1, cancelled: 9 }],
    ['failed', 500, { cancelled: 10 }],
  ])('[H22] keeps an outcome in flight that %s, and is owed nothing more', async (_kind, status, states) => {
    const consumer = await openConsumer();
    const seen = receiver.requests.length;
    receiver.hold();
    const events: ShownEvent[] = [];
    for (let number = 0; number < 10; number += 1) events.push(await publishTo(consumer.uid, { number }));
    await receiver.waitFor(seen + 1);
    await deleteConsumer(consumer.uid);
    await waitFor(async () => (await statesOf(consumer))['cancelled'] === 9, {
      what: 'the rest to be cancelled',
    });
    receiver.release(status);
    await waitFor(async () => expectSame(await statesOf(consumer), states), {
      what: 'the outcome in flight',
    });
    receiver.answer(200);
    expect(receiver.requests).toHaveLength(seen + 1);
    expect((await platform.pool.query('select from waybill.delivery_queue')).rowCount).toBe(0);
    // Its history stands under its id; by its uid there is nobody any more.
    const listed = await platform.client.get<{ data: object[] }>(`/v1/events?consumer=${consumer.id}`);
    expect(listed.body.data).toHaveLength(10);
    const deliveries = await platform.client.get<{ data: object[] }>(
      `/v1/deliveries?consumer=${consumer.id}`,
    );
    expect(deliveries.body.data).toHaveLength(10);
    const byUid = await platform.client.get(`/v1/events?consumer=${encodeURIComponent(consumer.uid)}`);
    expect(byUid.body).toMatchObject({ data: [] });
    const deliveryId = events[0]!.deliveries[0]!.id;
    expectProblem(await platform.client.post(`/v1/deliveries/${deliveryId}/replay`), 409, 'endpoint_deleted');
  });

  it('takes its endpoints along, with all that was learned of them, and nobody else’s', async () => {
    const gone = await openConsumer(3);
    const stays = await openConsumer(2);
    const own = await platform.addEndpoint(receiver.url, { event_types: ['never.sent'] });
    receiver.answer(500);
    for (const { uid } of [gone, stays]) await publishTo(uid);
    const untilRows = (rows: readonly number[]) =>
      waitFor(
        async () => expectSame(await learned(gone), rows[0]) && expectSame(await learned(stays), rows[1]),
        {
          what: `rows of circuits and tokens: ${rows.join()}`,
        },
      );
    await untilRows([6, 4]);
    await deleteConsumer(gone.id);
    await untilRows([0, 4]);
    receiver.answer(200);
    for (const id of gone.endpointIds) {
      expectProblem(await platform.client.get(`/v1/endpoints/${id}`), 404, 'endpoint_not_found');
      expectProblem(await platform.client.patch(`/v1/endpoints/${id}`, {}), 404, 'endpoint_not_found');
    }
    for (const id of [...stays.endpointIds, own.id])
      expect((await platform.client.get(`/v1/endpoints/${id}`)).status).toBe(200);
    const kept = await publishTo(stays.id);
    expect(kept.deliveries.map(({ endpoint_id }) => endpoint_id).toSorted()).toEqual(
      [...stays.endpointIds].toSorted(),
    );
  });

  it('is unknown from then on, and its uid is free for another, who gets none of its events', async () => {
    const first = await openConsumer();
    receiver.answer(500);
    const event = await publishTo(first.id);
    await deleteConsumer(first.id);
    receiver.answer(200);
    for (const consumer of [first.uid, first.id]) {
      expectProblem(await platform.client.publish('a.b', {}, { consumer }), 404, 'consumer_not_found');
      const body = { url: receiver.url, consumer };
      expectProblem(await platform.client.post('/v1/endpoints', body), 404, 'consumer_not_found');
    }
    const second = await platform.client.post<{ id: string }>('/v1/consumers', { uid: first.uid });
    expect(second.status).toBe(201);
    expect(second.body.id).not.toBe(first.id);
    const { id } = await platform.addEndpoint(receiver.url, { consumer: first.uid });
    const add = await platform.client.post(`/v1/events/${event.id}/deliveries`, { endpoint_id: id });
    expectProblem(add, 409, 'addressee_mismatch');
    const fresh = await publishTo(first.uid);
    expect(fresh.deliveries.map(({ endpoint_id }) => endpoint_id)).toEqual([id]);
    expectProblem(await platform.client.get(`/v1/consumers/${first.id}`), 404, 'consumer_not_found');
  });

  it('is not owed what was being accepted at that moment', async () => {
    const consumer = await openConsumer();
    const seen = receiver.requests.length;
    const client = await platform.pool.connect();
    try {
      await client.query('begin');
      const input = {
        tenantId: platform.tenant.tenantId,
        consumer: { uid: consumer.uid },
        eventType: 'order.created',
        payload: Buffer.from('{}'),
        contentType: 'application/json',
        metadata: null,
        notBefore: null,
        idempotency: null,
      };
      const [result] = await acceptEvents(client, [input], { maxAgeMs: 86_400_000 });
      expect(result).toMatchObject({ kind: 'accepted', event: { deliveries: [{}] } });
      // Nobody waits for whoever accepts.
      await deleteConsumer(consumer.id);
      await client.query('commit');
    } finally {
      client.release();
    }
    await waitFor(async () => expectSame(await statesOf(consumer), { cancelled: 1 }), { what: 'its end' });
    expect(receiver.requests).toHaveLength(seen);
  });

  it('ends a race with its producers: after the 204 none gets a 201, and before it all is settled', async () => {
    const consumer = await openConsumer(2);
    let deleted = false;
    let accepted = 0;
    const producer = async (): Promise<void> => {
      for (;;) {
        const late = deleted;
        const answer = await platform.client.publish('order.created', {}, { consumer: consumer.uid });
        if (answer.status === 201) {
          expect(late).toBe(false);
          accepted += 1;
        } else {
          expectProblem(answer, 404, 'consumer_not_found');
          return;
        }
      }
    };
    const producers = Array.from({ length: 8 }, producer);
    await waitFor(() => accepted >= 40, { what: 'some events to be accepted' });
    await deleteConsumer(consumer.id);
    deleted = true;
    await Promise.all(producers);
    await waitFor(
      async () => {
        const { succeeded = 0, cancelled = 0 } = await statesOf(consumer);
        return succeeded + cancelled === 2 * accepted;
      },
      { what: 'every delivery to end' },
    );
  });

  it('gets no endpoint that is made at the same time', async () => {
    for (let round = 0; round < 8; round += 1) {
      const consumer = await openConsumer();
      const body = { url: receiver.url, consumer: consumer.uid };
      const answers = await Promise.all([
        ...Array.from({ length: 3 }, () => platform.client.post('/v1/endpoints', body)),
        platform.client.delete(`/v1/consumers/${consumer.id}`),
        ...Array.from({ length: 3 }, () => platform.client.post('/v1/endpoints', body)),
      ]);
      expect(
        answers.map(({ status }) => status).filter((status) => ![201, 204, 404].includes(status)),
      ).toEqual([]);
      const { rows } = await platform.pool.query(
        'select from waybill.endpoints where consumer_id = $1 and deleted_at is null',
        [consumer.id.slice('con_'.length)],
      );
      expect(rows).toEqual([]);
    }
  });
});

function expectSame(found: unknown, wanted: unknown): boolean {
  return JSON.stringify(found, sorted) === JSON.stringify(wanted, sorted);
}

function sorted(_key: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).toSorted(([one], [other]) => (one < other ? -1 : 1)));
}

/** Rows of circuits and of rate tokens of its endpoints. */
async function learned({ id }: Consumer): Promise<number> {
  const { rows } = await platform.pool.query<{ count: number }>(
    `select count(*)::integer from waybill.endpoints p
     join (select tenant_id, endpoint_id from waybill.circuits union all select tenant_id, endpoint_id from waybill.rate_tokens) l
       on l.tenant_id = p.tenant_id and l.endpoint_id = p.id
     where p.consumer_id = $1`,
    [id.slice('con_'.length)],
  );
  return rows[0]!.count;
}
