import { acceptEvents } from '#outbox';
import { formatId } from '#runtime';
import { expect, it } from 'vitest';

import { ApiStage, type CreatedEndpoint } from '../support/api-stage.js';
import { type SeededRandom, seededRandom } from '../support/seeded-random.js';
import { SIZES } from '../support/sizes.js';
import { createTenantWithKey } from '../support/tenant.js';

interface Accepted {
  readonly id: string;
  readonly deliveries: readonly { readonly endpoint_id: string }[];
}

const BATCH = 250;

const stage = new ApiStage();

/** Who gets each of these event types, by the API's answer. */
async function publishAll(eventTypes: readonly string[]): Promise<string[][]> {
  const found: string[][] = [];
  for (let start = 0; start < eventTypes.length; start += BATCH) {
    const events = eventTypes.slice(start, start + BATCH).map((event_type) => ({ event_type, payload: {} }));
    const answer = await stage.client.post<{ data: Accepted[] }>('/v1/events/batch', { events });
    expect(answer.status).toBe(201);
    found.push(...answer.body.data.map(({ deliveries }) => deliveries.map(({ endpoint_id }) => endpoint_id)));
  }
  return found;
}

/** What a subscription means, by the words of row 66 and without a look at the SQL. */
function wants(subscription: readonly string[] | null, eventType: string): boolean {
  if (subscription === null || subscription.length === 0) return true;
  return subscription.some((entry) => matches(entry.split('.'), eventType.split('.')));
}

function matches([wanted, ...wantedRest]: string[], [given, ...givenRest]: string[]): boolean {
  if (wanted === undefined) return given === undefined;
  if (given === undefined) return false;
  if (wanted === '*' && wantedRest.length === 0) return true;
  return (wanted === '*' || wanted === given) && matches(wantedRest, givenRest);
}

const SEGMENTS = ['a', 'b', 'A', 'order', 'order-', 'orde', 'created', '0', '_', 'waybill'];

function randomType(random: SeededRandom): string {
  const segments = Array.from({ length: 1 + random.below(4) }, () => random.pick(SEGMENTS));
  // Producers may not publish the operator's events.
  const text = segments.join('.');
  return text.startsWith('waybill.') ? `a.${text}` : text;
}

function randomSubscription(random: SeededRandom): readonly string[] | null {
  if (random.chance(0.1)) return random.pick([null, [], ['*']]);
  return Array.from({ length: 1 + random.below(3) }, () => {
    const segments = randomType(random)
      .split('.')
      .map((segment) => (random.chance(0.35) ? '*' : segment));
    // Under `waybill.` only literal names may be subscribed to.
    return segments[0] === 'waybill' ? 'waybill' : segments.join('.');
  });
}

it('[row 66] matches null, [], *, a prefix and an exact name as all, all, all, prefix and exact', async () => {
  const subscriptions: (readonly string[] | null)[] = [null, [], ['*'], ['payment.*'], ['order.created']];
  const endpoints: CreatedEndpoint[] = [];
  for (const event_types of subscriptions) endpoints.push(await stage.addEndpoint({ event_types }));
  expect(endpoints.map(({ event_types }) => event_types)).toEqual([
    ['*'],
    ['*'],
    ['*'],
    ['payment.*'],
    ['order.created'],
  ]);
  const expected: Record<string, number[]> = {
    'order.created': [0, 1, 2, 4],
    'order.created.eu': [0, 1, 2],
    'Order.created': [0, 1, 2],
    order: [0, 1, 2],
    payment: [0, 1, 2],
    'payment.made': [0, 1, 2, 3],
    'payment.made.twice': [0, 1, 2, 3],
    'payments.made': [0, 1, 2],
    'a.payment.made': [0, 1, 2],
    'paymentx.made': [0, 1, 2],
  };
  const found = await publishAll(Object.keys(expected));
  expect(
    found.map((ids) =>
      ids
        .map((id) => endpoints.findIndex((endpoint) => endpoint.id === id))
        .toSorted((one, other) => one - other),
    ),
  ).toEqual(Object.values(expected));
  for (const { id } of endpoints) await stage.client.delete(`/v1/endpoints/${id}`);
});

it('[row 66] agrees with the oracle on random subscriptions and types, one delivery for each endpoint', async () => {
  const random = seededRandom('[row 66]');
  const stranger = await createTenantWithKey(stage.database.url);
  await stage.addEndpoint({}, stage.clientOf(stage.api, stranger.key));

  const subscribed: { id: string; subscription: readonly string[] | null }[] = [];
  for (let count = 0; count < 40; count += 1) {
    const subscription = randomSubscription(random);
    // Paused endpoints get what they are owed for later; disabled ones are owed nothing.
    const status = random.pick(['enabled', 'enabled', 'enabled', 'paused', 'disabled']);
    const { id } = await stage.addEndpoint({ event_types: subscription, status });
    if (status !== 'disabled') subscribed.push({ id, subscription });
  }
  const eventTypes = Array.from({ length: SIZES.fuzzRequests }, () => randomType(random));
  const found = await publishAll(eventTypes);
  let matched = 0;
  eventTypes.forEach((eventType, index) => {
    const expected = subscribed
      .filter(({ subscription }) => wants(subscription, eventType))
      .map(({ id }) => id)
      .toSorted();
    expect({ eventType, ids: found[index]!.toSorted() }).toEqual({ eventType, ids: expected });
    matched += expected.length;
  });
  // The patterns met their types, but not all of them.
  expect(matched).toBeGreaterThan(eventTypes.length);
  expect(matched).toBeLessThan((eventTypes.length * subscribed.length * 3) / 4);
  const { rows } = await stage.pool.query(
    `select count(*)::integer as count from waybill.deliveries where tenant_id = $1`,
    [stranger.tenantId],
  );
  expect(rows).toEqual([{ count: 0 }]);
});

it('[row 66] gives an operator event to those alone who name it, whatever a pattern would match', async () => {
  const patterns = [null, ['*'], ['*.*'], ['*.endpoint.disabled'], ['*.endpoint.*'], ['*.*.disabled']];
  for (const event_types of patterns) await stage.addEndpoint({ event_types });
  const { id } = await stage.addEndpoint({ event_types: ['waybill.endpoint.disabled'] });
  const event = {
    tenantId: stage.tenant.tenantId,
    eventType: 'waybill.endpoint.disabled',
    payload: Buffer.from('{}'),
    contentType: 'application/json',
    metadata: null,
    notBefore: null,
    idempotency: null,
  };
  const [result] = await acceptEvents(stage.pool, [event], { maxAgeMs: 1_000 });
  const owed = result?.kind === 'accepted' ? result.event.deliveries : [];
  expect(owed.map(({ endpointId }) => formatId('endpoint', endpointId))).toEqual([id]);
});

it('[row 66] follows a changed subscription with the very next event', async () => {
  const { id } = await stage.addEndpoint({ event_types: ['only.this'] });
  const isOwed = async (eventType: string): Promise<boolean> =>
    (await publishAll([eventType]))[0]!.includes(id);
  expect([await isOwed('only.this'), await isOwed('only.that')]).toEqual([true, false]);
  await stage.client.patch(`/v1/endpoints/${id}`, { event_types: ['*.that', 'only.that'] });
  expect([await isOwed('only.this'), await isOwed('only.that')]).toEqual([false, true]);
  await stage.client.patch(`/v1/endpoints/${id}`, { status: 'disabled' });
  expect(await isOwed('only.that')).toBe(false);
  await stage.client.patch(`/v1/endpoints/${id}`, { status: 'enabled', event_types: null });
  expect(await isOwed('only.this')).toBe(true);
  await stage.client.delete(`/v1/endpoints/${id}`);
  expect(await isOwed('only.this')).toBe(false);
});
