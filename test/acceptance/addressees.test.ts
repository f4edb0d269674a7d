import { createHash } from 'node:crypto';

import { acceptEvents } from '#outbox';
import { beforeAll, describe, expect, it } from 'vitest';

import type { ApiClient, PublishOptions } from '../support/api-client.js';
import { ApiStage, type CreatedEndpoint } from '../support/api-stage.js';
import { expectProblem } from '../support/expect-problem.js';
import { rowCounts } from '../support/row-counts.js';
import { createTenantWithKey } from '../support/tenant.js';

interface Accepted {
  readonly id: string;
  readonly consumer_id: string | null;
  readonly deliveries: readonly { readonly id: string; readonly endpoint_id: string }[];
}

interface Page<Row> {
  readonly data: readonly Row[];
}

/** c1 and c2 are consumers of A; B has a c1 too. Each has an endpoint that takes everything, and so have A and B. */
type Owner = 'A' | 'c1' | 'c2';

const NOBODY = `con_${'0'.repeat(32)}`;
const stage = new ApiStage();
const ids = { c1: '', c2: '' };
const endpoints: Record<Owner, CreatedEndpoint[]> = { A: [], c1: [], c2: [] };
let b: ApiClient;
let idOfB: string;

beforeAll(async () => {
  const { key } = await createTenantWithKey(stage.database.url, { name: 'B' });
  b = stage.clientOf(stage.api, key);
  idOfB = (await b.post<{ id: string }>('/v1/consumers', { uid: 'c1' })).body.id;
  await stage.addEndpoint({ consumer: 'c1' }, b);
  await stage.addEndpoint({}, b);
  for (const uid of ['c1', 'c2'] as const)
    ids[uid] = (await stage.client.post<{ id: string }>('/v1/consumers', { uid })).body.id;
  for (const event_types of [null, ['order.*'], ['order.created']]) {
    endpoints.A.push(await stage.addEndpoint({ event_types }));
    endpoints.c1.push(await stage.addEndpoint({ event_types, consumer: 'c1' }));
    endpoints.c2.push(await stage.addEndpoint({ event_types, consumer: ids.c2 }));
  }
});

async function publish(options: PublishOptions = {}, eventType = 'order.created'): Promise<Accepted> {
  const answer = await stage.client.publish<Accepted>(eventType, { n: 1 }, options);
  expect(answer).toMatchObject({ status: 201 });
  return answer.body;
}

const targetsOf = ({ deliveries }: Accepted): string[] =>
  deliveries.map(({ endpoint_id }) => endpoint_id).toSorted();
const idsOf = (owner: Owner, count = 3): string[] =>
  endpoints[owner]
    .slice(0, count)
    .map(({ id }) => id)
    .toSorted();

describe('[row 68] an event', () => {
  it('for a consumer, by uid or id, reaches only its endpoints; one of the tenant only the tenant’s', async () => {
    for (const [consumer, owner] of [
      ['c1', 'c1'],
      [ids.c1, 'c1'],
      ['c2', 'c2'],
      [ids.c2, 'c2'],
      [undefined, 'A'],
    ] as const) {
      const consumerId = owner === 'A' ? null : ids[owner];
      for (const [eventType, count] of [
        ['order.created', 3],
        ['order.paid', 2],
        ['other', 1],
      ] as const) {
        const event = await publish({ consumer }, eventType);
        expect({ targets: targetsOf(event), of: event.consumer_id }).toEqual({
          targets: idsOf(owner, count),
          of: consumerId,
        });
        const read = (await stage.client.get<Accepted>(`/v1/events/${event.id}`)).body;
        expect(read).toMatchObject({ consumer_id: consumerId });
        expect(targetsOf(read)).toEqual(idsOf(owner, count));
      }
    }
    const plain = { event_type: 'order.created', payload: 1, consumer: null };
    const answer = await stage.client.post<Accepted>('/v1/events', plain);
    expect(targetsOf(answer.body)).toEqual(idsOf('A'));
  });

  it('of a batch goes each to its own', async () => {
    const consumers = [undefined, 'c1', ids.c2, 'c2', null, ids.c1];
    const owners: readonly Owner[] = ['A', 'c1', 'c2', 'c2', 'A', 'c1'];
    for (const mode of ['all_or_nothing', 'per_item']) {
      const events = consumers.map((consumer) => ({ event_type: 'order.created', payload: 1, consumer }));
      const { body } = await stage.client.post<Page<Accepted & { event: Accepted }>>('/v1/events/batch', {
        events,
        mode,
      });
      const stored = body.data.map((item) => (mode === 'per_item' ? item.event : item));
      expect(stored.map(targetsOf)).toEqual(owners.map((owner) => idsOf(owner)));
    }
  });

  it('goes to its own when many requests share a statement', async () => {
    const consumers = Array.from({ length: 60 }, (_, n) => ['c1', 'c2', undefined][n % 3]);
    const events = await Promise.all(consumers.map((consumer) => publish({ consumer })));
    expect(events.map(targetsOf)).toEqual(consumers.map((consumer) => idsOf((consumer ?? 'A') as Owner)));
  });

  it('for a consumer of another tenant is refused as one for nobody, and B’s c1 is not A’s', async () => {
    const before = await rowCounts(stage.pool);
    for (const consumer of [idOfB, NOBODY, 'C1', 'c1x'])
      expectProblem(await stage.client.publish('a.b', '1', { consumer }), 404, 'consumer_not_found');
    expect(await rowCounts(stage.pool)).toEqual(before);
    const own = (await b.publish<Accepted>('order.created', '1', { consumer: 'c1' })).body;
    expect(own.consumer_id).toBe(idOfB);
    expect(own.deliveries).toHaveLength(1);
    expect(endpoints.c1.map(({ id }) => id)).not.toContain(own.deliveries[0]!.endpoint_id);
  });
});

describe('an event for nobody', () => {
  const good = { event_type: 'order.created', payload: 1, consumer: 'c1' };
  const bad = { ...good, consumer: 'nobody' };

  it('refuses a batch that is taken whole, and names its place', async () => {
    const before = await rowCounts(stage.pool);
    for (const key of [undefined, 'whole']) {
      const events = [
        good,
        { ...good, idempotency_key: key },
        { ...bad, idempotency_key: key && `${key}-2` },
      ];
      const answer = await stage.client.post('/v1/events/batch', { events });
      const { details } = expectProblem(answer, 404, 'consumer_not_found');
      expect(details).toEqual([{ field: 'events[2].consumer', reason: 'invalid' }]);
    }
    expect(await rowCounts(stage.pool)).toEqual(before);
    const malformed = await stage.client.post('/v1/events/batch', {
      events: [good, { ...good, consumer: '' }],
    });
    const { details } = expectProblem(malformed, 400, 'invalid_consumer_uid');
    expect(details?.[0]?.field).toBe('events[1].consumer');
    expect(await rowCounts(stage.pool)).toEqual(before);
  });

  it('is refused alone in a batch that is taken item by item', async () => {
    const before = await rowCounts(stage.pool);
    const events = [good, bad, { ...good, consumer: 5 }, { ...bad, idempotency_key: 'per-item' }];
    const { status, body } = await stage.client.post<Page<object>>('/v1/events/batch', {
      events,
      mode: 'per_item',
    });
    expect({ status, data: body.data }).toMatchObject({
      status: 200,
      data: [
        { status: 'accepted', event: { consumer_id: ids.c1 } },
        { status: 'refused', problem: { code: 'consumer_not_found', status: 404 } },
        { status: 'refused', problem: { code: 'invalid_consumer_uid', status: 400 } },
        { status: 'refused', problem: { code: 'consumer_not_found', status: 404 } },
      ],
    });
    const after = await rowCounts(stage.pool);
    expect(after).toMatchObject({ events: before.events + 1, idempotency_keys: before.idempotency_keys });
  });

  it('leaves those that come at the same time alone', async () => {
    const before = await rowCounts(stage.pool);
    const answers = await Promise.all(
      Array.from({ length: 40 }, (_, n) =>
        stage.client.publish('order.created', `${n}`, { consumer: n % 2 ? 'c1' : 'no' }),
      ),
    );
    expect(answers.map(({ status }) => status)).toEqual(answers.map((_, n) => (n % 2 ? 201 : 404)));
    expect((await rowCounts(stage.pool)).events).toBe(before.events + 20);
  });

  it('takes no key: it may come again once the consumer is there', async () => {
    const options = { idempotencyKey: 'later', consumer: 'late' };
    expectProblem(await stage.client.publish('order.created', '1', options), 404, 'consumer_not_found');
    await stage.client.post('/v1/consumers', { uid: 'late' });
    const first = await stage.client.publish<Accepted>('order.created', '1', options);
    expect(first).toMatchObject({ status: 201 });
    expect(first.headers['idempotency-replayed']).toBeUndefined();
    // And once it is stored, a repeat gets it even when the consumer is gone.
    expect((await stage.client.delete('/v1/consumers/late')).status).toBe(204);
    const again = await stage.client.publish<Accepted>('order.created', '1', options);
    expect(again).toMatchObject({
      status: 201,
      headers: { 'idempotency-replayed': 'true' },
      body: first.body,
    });
    const other = { ...options, metadata: { other: 'content' } };
    expectProblem(await stage.client.publish('order.created', '1', other), 409, 'idempotency_conflict');
  });
});

describe('under one idempotency key the consumer is part of the content', () => {
  it.each([
    ['c1', 'c2'],
    ['c1', undefined],
    [undefined, 'c2'],
    ['c1', 'nobody'],
  ])('%s, then %s', async (first, second) => {
    const idempotencyKey = `for ${first} then ${second}`.replaceAll(' ', '-');
    const stored = await publish({ idempotencyKey, consumer: first });
    const repeat = await stage.client.publish('order.created', { n: 1 }, { idempotencyKey, consumer: first });
    expect(repeat).toMatchObject({ status: 201, body: { id: stored.id, consumer_id: stored.consumer_id } });
    const other = await stage.client.publish('order.created', { n: 1 }, { idempotencyKey, consumer: second });
    expectProblem(other, 409, 'idempotency_conflict');
  });

  it('a key that was used before there were consumers still stands for its event', async () => {
    // What fingerprint.ts made of this event: type, payload, no time and no metadata, each behind its length.
    const hash = createHash('sha256');
    for (const part of ['order.created', '{"n":1}', '', '']) {
      const length = Buffer.alloc(4);
      length.writeUInt32BE(part.length);
      hash.update(length).update(part);
    }
    const input = {
      tenantId: stage.tenant.tenantId,
      eventType: 'order.created',
      payload: Buffer.from('{"n":1}'),
      contentType: 'application/json',
      metadata: null,
      notBefore: null,
      idempotency: { key: 'of-old', fingerprint: hash.digest() },
    };
    await acceptEvents(stage.pool, [input], { maxAgeMs: 86_400_000 });
    const answer = await stage.client.publish('order.created', { n: 1 }, { idempotencyKey: 'of-old' });
    expect(answer).toMatchObject({ status: 201, headers: { 'idempotency-replayed': 'true' } });
  });
});

describe('one delivery more of an event', () => {
  const add = (event: Accepted, endpoint: CreatedEndpoint) =>
    stage.client.post(`/v1/events/${event.id}/deliveries`, { endpoint_id: endpoint.id });

  it('goes to endpoints of its addressee alone', async () => {
    for (const owner of ['A', 'c1', 'c2'] as const) {
      const event = await publish(owner === 'A' ? {} : { consumer: owner }, 'other');
      const before = await rowCounts(stage.pool);
      for (const stranger of (['A', 'c1', 'c2'] as const).filter((one) => one !== owner))
        for (const endpoint of endpoints[stranger])
          expectProblem(await add(event, endpoint), 409, 'addressee_mismatch');
      expect(await rowCounts(stage.pool)).toEqual(before);
      const added = await add(event, endpoints[owner][2]!);
      const consumerId = owner === 'A' ? null : ids[owner];
      expect(added).toMatchObject({ status: 201, body: { state: 'pending', consumer_id: consumerId } });
      expectProblem(await add(event, endpoints[owner][2]!), 409, 'delivery_exists');
    }
  });
});
