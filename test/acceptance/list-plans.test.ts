import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';

import {
  acceptEvents,
  addDelivery,
  cancelDelivery,
  cancelEvent,
  type DeliveryFilter,
  listDeadLetters,
  listDeliveries,
  listEvents,
  readDeadLetter,
  readDelivery,
  readEvent,
  readStanding,
  replayDelivery,
} from '#outbox';

import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { type ExplainingClient, explainingClient } from '../support/explain.js';
import { OWED, seedHistory } from '../support/seed-history.js';
import { createTenantWithKey } from '../support/tenant.js';

const PAGE = 51;
/** Rows that one page may touch in one table: once in it, once in what it is joined with, with room for both. */
const ROWS_MAX = PAGE * 4;

let database: TestDatabase;
let db: ExplainingClient;
let tenantId: string;
let quietEndpointId: string;
let quietConsumerId: string;
let busyConsumerId: string;

beforeAll(async () => {
  database = await createTestDatabase();
  ({ tenantId } = await createTenantWithKey(database.url));
  ({ quietEndpointId, quietConsumerId, busyConsumerId } = await seedHistory(database.pool, tenantId));
  db = await explainingClient(database.url, {
    plans: 'force_custom_plan',
    role: 'waybill_app',
    tenantId,
  });
});

afterAll(async () => {
  await db.end();
  await database.drop();
});

/** The most rows that the last plan read of one table, those that a filter threw away included. */
function mostRowsRead(client = db): { table: string; rows: number } {
  const byTable = new Map<string, number>();
  for (const node of client.lastPlan()) {
    const table = (node['Relation Name'] ?? '').replace(/_\d{8}$/, '');
    if (table === '') continue;
    const rows = (node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0)) * node['Actual Loops'];
    byTable.set(table, (byTable.get(table) ?? 0) + rows);
  }
  const [table, rows] = [...byTable].toSorted(([, one], [, other]) => other - one)[0] ?? ['none', 0];
  return { table, rows };
}

const ALL: DeliveryFilter = {
  after: null,
  endpointId: null,
  eventId: null,
  consumerId: null,
  state: null,
  createdAfter: null,
  createdBefore: null,
  limit: PAGE,
};

const daysAgo = (days: number): Date => new Date(Date.now() - days * 86_400_000);

describe('a page of deliveries reads little more than itself', () => {
  it.each<[string, () => Partial<DeliveryFilter>]>([
    ['of all', () => ({})],
    ['of one endpoint', () => ({ endpointId: quietEndpointId })],
    ['of one endpoint and state', () => ({ endpointId: quietEndpointId, state: 'pending' })],
    ['of a time', () => ({ createdAfter: daysAgo(2), createdBefore: daysAgo(1) })],
    ['that succeeded', () => ({ state: 'succeeded' })],
    ['that are owed, behind a long history', () => ({ state: 'pending' })],
    ['that died', () => ({ state: 'dead' })],
    ['of a consumer, behind a long history', () => ({ consumerId: quietConsumerId })],
    ['of a consumer with a history of its own', () => ({ consumerId: busyConsumerId })],
    [
      'of a consumer and a time',
      () => ({ consumerId: busyConsumerId, createdAfter: daysAgo(2), createdBefore: daysAgo(1) }),
    ],
    ['that succeeded, of a consumer', () => ({ consumerId: busyConsumerId, state: 'succeeded' })],
    ['that died, of a consumer', () => ({ consumerId: busyConsumerId, state: 'dead' })],
  ])('%s', async (_what, filter) => {
    const rows = await listDeliveries(db, tenantId, { ...ALL, ...filter() });
    if (rows.length === PAGE) {
      const { eventId, endpointId } = rows[PAGE - 1]!;
      await listDeliveries(db, tenantId, { ...ALL, ...filter(), after: { eventId, endpointId } });
    }
    expect(mostRowsRead().rows, JSON.stringify(mostRowsRead())).toBeLessThanOrEqual(ROWS_MAX);
  });
});

it.each(['in_progress', 'held'] as const)(
  'a page of deliveries that are %s reads what is owed, not the history',
  async (state) => {
    expect(await listDeliveries(db, tenantId, { ...ALL, state })).toEqual([]);
    // Each key once, and its row once.
    expect(mostRowsRead().rows).toBeLessThanOrEqual(2 * OWED);
  },
);

it.each(['pending', 'in_progress', 'held'] as const)(
  'a page of the deliveries of a consumer that are %s reads what it is owed, not what others are or were',
  async (state) => {
    const rows = await listDeliveries(db, tenantId, { ...ALL, state, consumerId: quietConsumerId });
    expect(rows).toHaveLength(state === 'pending' ? PAGE : 0);
    expect(mostRowsRead().rows).toBeLessThanOrEqual(2 * OWED);
    expect(await listDeliveries(db, tenantId, { ...ALL, state, consumerId: busyConsumerId })).toEqual([]);
    expect(mostRowsRead().rows).toBeLessThanOrEqual(ROWS_MAX);
  },
);

describe('a page of events reads little more than itself', () => {
  const all = {
    afterId: null,
    eventType: null,
    consumerId: null,
    createdAfter: null,
    createdBefore: null,
    limit: PAGE,
  };

  it.each([
    ['of all', {}],
    ['of a time', { createdAfter: daysAgo(2), createdBefore: daysAgo(1) }],
    ['of a common type', { eventType: 'order.created' }],
    ['of a consumer, behind a long history', { consumerId: quietConsumerId }],
    [
      'of a consumer and a time',
      { consumerId: busyConsumerId, createdAfter: daysAgo(2), createdBefore: daysAgo(1) },
    ],
  ])('%s', async (_what, filter) => {
    const rows = await listEvents(db, tenantId, { ...all, ...filter });
    if (rows.length === PAGE)
      await listEvents(db, tenantId, { ...all, ...filter, afterId: rows[PAGE - 1]!.id });
    expect(mostRowsRead().rows, JSON.stringify(mostRowsRead())).toBeLessThanOrEqual(ROWS_MAX);
  });
});

describe('a page of dead letters reads little more than itself', () => {
  const all = { after: null, endpointId: null, resolved: null, limit: PAGE };

  it.each([
    ['of all', () => ({})],
    ['of those that are unresolved', () => ({ resolved: false })],
  ])('%s', async (_what, filter) => {
    const rows = await listDeadLetters(db, tenantId, { ...all, ...filter() });
    if (rows.length === PAGE)
      await listDeadLetters(db, tenantId, { ...all, ...filter(), after: rows[PAGE - 1]!.place });
    expect(mostRowsRead().rows, JSON.stringify(mostRowsRead())).toBeLessThanOrEqual(ROWS_MAX);
  });
});

it('a look-up by id reads the rows of that id', async () => {
  const { rows } = await database.pool.query(
    `select delivery_id, event_id from waybill.dead_letters order by died_at limit 1`,
  );
  const { delivery_id: deliveryId, event_id: eventId } = rows[0];
  expect(await readDelivery(db, tenantId, deliveryId)).not.toBeNull();
  expect(mostRowsRead().rows).toBeLessThanOrEqual(8);
  expect(await readDeadLetter(db, tenantId, deliveryId)).not.toBeNull();
  expect(mostRowsRead().rows).toBeLessThanOrEqual(8);
  expect(await readEvent(db, tenantId, eventId)).not.toBeNull();
  expect(mostRowsRead().rows).toBeLessThanOrEqual(8);
  expect(await readStanding(db, tenantId, deliveryId)).toMatchObject({ state: 'dead' });
  expect(mostRowsRead().rows).toBeLessThanOrEqual(8);
});

it('an explanation of what is owed counts what is ahead of it no further than it says', async () => {
  const { rows } = await database.pool.query(
    `select delivery_id from waybill.delivery_queue order by due_at desc, event_id limit 1`,
  );
  await database.pool.query(
    `update waybill.delivery_queue set due_at = now() + interval '1 hour' where delivery_id = $1`,
    [rows[0].delivery_id],
  );
  const standing = await readStanding(db, tenantId, rows[0].delivery_id);
  expect(standing?.queued).toMatchObject({ ahead: 1_000 });
  const read = mostRowsRead();
  expect(read.table).toBe('delivery_queue');
  expect(read.rows).toBeLessThanOrEqual(1_008);
});

describe('planned once for all values, as in the api,', () => {
  let generic: ExplainingClient;

  beforeAll(async () => {
    generic = await explainingClient(database.url, { role: 'waybill_app', tenantId });
  });

  afterAll(() => generic.end());

  it('a repeat under a used key reads the rows of its event', async () => {
    const input = {
      tenantId,
      eventType: 'order.created',
      payload: Buffer.from('{}'),
      contentType: 'application/json',
      metadata: null,
      notBefore: null,
      idempotency: { key: 'once', fingerprint: Buffer.alloc(32) },
    };
    const intake = await explainingClient(database.url, { role: 'waybill_intake' });
    onTestFinished(() => intake.end());
    const accept = () => acceptEvents(intake, [input], { maxAgeMs: 86_400_000 });
    const [first] = await accept();
    expect(first).toMatchObject({ kind: 'accepted' });
    expect(await accept()).toMatchObject([
      { kind: 'repeated', event: { id: first?.kind === 'accepted' ? first.event.id : '' } },
    ]);
    expect(mostRowsRead(intake).rows).toBeLessThanOrEqual(8);
  });

  it('a replay reads the rows of its delivery', async () => {
    const { rows } = await database.pool.query(
      `select delivery_id from waybill.dead_letters order by died_at limit 1`,
    );
    const replayed = await replayDelivery(generic, tenantId, rows[0].delivery_id, {
      apiKeyId: null,
      maxAgeMs: 86_400_000,
    });
    expect(replayed.kind).toBe('replayed');
    expect(mostRowsRead(generic).rows).toBeLessThanOrEqual(16);
  });

  it('a cancel, of one delivery or of an event, reads the rows of that event', async () => {
    const { rows } = await database.pool.query<{ delivery_id: string; event_id: string }>(
      `select delivery_id, event_id from waybill.delivery_queue order by event_id limit 2`,
    );
    expect(await cancelDelivery(generic, tenantId, rows[0]!.delivery_id)).toEqual({ kind: 'cancelled' });
    expect(mostRowsRead(generic).rows).toBeLessThanOrEqual(16);
    // Refused: the second statement, which reads the state, is the last one.
    expect(await cancelDelivery(generic, tenantId, rows[0]!.delivery_id)).toMatchObject({
      state: 'cancelled',
    });
    expect(mostRowsRead(generic).rows).toBeLessThanOrEqual(16);
    const plans: { table: string; rows: number }[] = [];
    const watching = {
      ...generic,
      async query(statement: { text: string; values?: unknown[] }) {
        const result = await generic.query(statement);
        plans.push(mostRowsRead(generic));
        return result;
      },
    } as ExplainingClient;
    expect(await cancelEvent(watching, tenantId, rows[1]!.event_id)).toMatchObject([{ result: 'cancelled' }]);
    expect(plans).toHaveLength(2);
    for (const plan of plans) expect(plan.rows, JSON.stringify(plan)).toBeLessThanOrEqual(16);
  });

  it('one delivery more of an event reads the rows of that event', async () => {
    const { rows } = await database.pool.query<{ event_id: string; endpoint_id: string }>(
      `select d.event_id, p.id as endpoint_id
       from (select event_id, endpoint_id from waybill.dead_letters order by died_at limit 1) d
       join waybill.endpoints p on p.id <> d.endpoint_id limit 1`,
    );
    const target = { eventId: rows[0]!.event_id, endpointId: rows[0]!.endpoint_id };
    const add = () => addDelivery(generic, tenantId, target, { maxAgeMs: 86_400_000 });
    expect(await add()).toMatchObject({ kind: 'added' });
    expect(mostRowsRead(generic).rows).toBeLessThanOrEqual(16);
    expect(await add()).toMatchObject({ kind: 'exists', state: 'pending' });
    expect(mostRowsRead(generic).rows).toBeLessThanOrEqual(16);
  });
});
