import { acceptEvents, type EventInput } from '#outbox';
import { createEndpoint, Endpoint, EndpointSecret, Subscription } from '#endpoints';
import { parseEgressPolicy } from '#egress';
import { formatId, idTime, openDataSource, readSettledUntil } from '#runtime';
import { withTenant } from '#tenants';
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { PoolClient } from 'pg';

import { ApiStage } from '../support/api-stage.js';
import { createTestPool } from '../support/database.js';
import { testKeyring } from '../support/encryption.js';
import { waitFor } from '../support/wait-for.js';

interface Row {
  readonly id?: string;
  readonly event_id?: string;
  readonly delivery_id?: string;
  readonly created_at?: string;
  readonly died_at?: string;
}

interface Page {
  readonly data: readonly Row[];
  readonly next_cursor: string | null;
  readonly settled_until: string | null;
}

const DAY_MS = 86_400_000;
const stage = new ApiStage();
const sessions: PoolClient[] = [];

beforeAll(async () => {
  await stage.addEndpoint();
});
beforeEach(() => untilSettled(new Date()));
afterEach(async () => {
  for (const session of sessions.splice(0)) {
    await session.query('rollback');
    session.release();
  }
});

/** Begins a transaction that is older than whatever is stored from here on. */
async function begin(): Promise<PoolClient> {
  const session = await stage.pool.connect();
  sessions.push(session);
  await nextMillisecond();
  await session.query('begin');
  await session.query('select now()');
  await nextMillisecond();
  return session;
}

/** Ids of one millisecond have no order among them. */
async function nextMillisecond(): Promise<void> {
  const read = async () =>
    (await stage.pool.query(`select date_trunc('milliseconds', clock_timestamp())::text as now`)).rows[0].now;
  const before: unknown = await read();
  await waitFor(async () => (await read()) !== before, { what: 'the next millisecond' });
}

async function commit(session: PoolClient): Promise<void> {
  await session.query('commit');
  sessions.splice(sessions.indexOf(session), 1);
  session.release();
}

const eventOf = (payload: string): EventInput => ({
  tenantId: stage.tenant.tenantId,
  eventType: 'order.created',
  payload: Buffer.from(payload),
  contentType: 'application/json',
  metadata: null,
  notBefore: null,
  idempotency: null,
});

/** Accepts an event in an open transaction, as a batch does. */
async function acceptIn(session: PoolClient): Promise<string> {
  const [result] = await acceptEvents(session, [eventOf('{}')], { maxAgeMs: DAY_MS });
  if (result?.kind !== 'accepted') throw new Error('the event was not accepted');
  return formatId('event', result.event.id);
}

async function publish(): Promise<string> {
  const { body } = await stage.client.publish<{ id: string }>('order.created', {});
  return body.id;
}

/** The dead letters of an event's deliveries, as the record of their last attempt leaves them. */
async function dieIn(session: Pick<PoolClient, 'query'>, eventId: string): Promise<void> {
  await session.query(
    `insert into waybill.dead_letters (tenant_id, event_id, endpoint_id, delivery_id, reason, attempt_count, died_at)
     select tenant_id, event_id, endpoint_id, id, 'exhausted', 4, now() from waybill.deliveries where event_id = $1::uuid`,
    [eventId.slice('evt_'.length)],
  );
}

const page = async (path: string, query: string): Promise<Page> =>
  (await stage.client.get<Page>(`${path}?${query}`)).body;

/** Pages from newest to oldest; `between` runs after the first page. */
async function walk(path: string, query: string, between: () => Promise<unknown> = async () => undefined) {
  const first = await page(path, `${query}limit=2`);
  await between();
  const rows = [...first.data];
  for (let { next_cursor: cursor } = first; cursor !== null;) {
    const next = await page(path, `${query}limit=2&cursor=${cursor}`);
    rows.push(...next.data);
    cursor = next.next_cursor;
  }
  const ids = rows.map((row) => row.event_id ?? row.id!);
  expect(new Set(ids).size).toBe(ids.length);
  return { ids, settledUntil: first.settled_until };
}

/** Waits until the lists are settled beyond this time. */
async function untilSettled(time: Date): Promise<void> {
  await waitFor(
    async () => {
      const { settled_until: until } = await page('/v1/events', 'limit=1');
      return until !== null && Date.parse(until) > time.getTime();
    },
    { what: `the lists to be settled until ${time.toISOString()}` },
  );
}

describe.each([
  ['/v1/events', 'created_after'],
  ['/v1/deliveries', 'created_after'],
  ['/v1/dead-letters', 'died_after'],
])('[row 90] %s', (path, after) => {
  const isDead = path === '/v1/dead-letters';

  /** What a late transaction adds to the list; gives the event's id. */
  async function add(session: PoolClient, known: string): Promise<string> {
    if (!isDead) return acceptIn(session);
    await dieIn(session, known);
    return known;
  }

  async function addNow(): Promise<string> {
    const id = await publish();
    if (isDead) await dieIn(stage.pool, id);
    return id;
  }

  it('never says that it is complete up to a time at which a row will still come', async () => {
    const known = isDead ? await publish() : '';
    for (let n = 0; n < 3; n += 1) await addNow();
    const session = await begin();
    const late = await add(session, known);
    await addNow();
    // The first page holds what is younger and what is older than the late row, which commits behind it.
    const { ids, settledUntil } = await walk(path, '', () => commit(session));
    expect(ids).not.toContain(late);
    expect(settledUntil).not.toBeNull();
    const rest = await walk(path, `${after}=${settledUntil}&`);
    expect(rest.ids).toContain(late);
    expect(rest.ids.filter((id) => id === late)).toHaveLength(1);
    // And once it is there, the list is settled beyond it.
    await untilSettled(new Date());
    const whole = await page(path, 'limit=100');
    const row = whole.data.find((found) => (found.event_id ?? found.id) === late)!;
    expect(Date.parse(whole.settled_until!)).toBeGreaterThan(Date.parse((row.died_at ?? row.created_at)!));
  });

  it('loses nothing to a client that follows it as the reference says, whenever transactions end', async () => {
    const expected = new Set<string>();
    const open: PoolClient[] = [];
    const seen = new Set<string>();
    const naive = new Set<string>();
    const start = await page(path, 'limit=1');
    let from = start.settled_until!;
    let newest = start.data[0]?.died_at ?? start.data[0]?.created_at ?? from;
    const follow = async () => {
      const { ids, settledUntil } = await walk(path, `${after}=${from}&`);
      ids.forEach((id) => seen.add(id));
      if (settledUntil !== null && settledUntil > from) from = settledUntil;
      const ahead = await page(path, `${after}=${newest}&limit=100`);
      ahead.data.forEach((row) => naive.add((row.event_id ?? row.id)!));
      newest = ahead.data[0]?.died_at ?? ahead.data[0]?.created_at ?? newest;
    };
    // Each begins before the one before it ends, and ends after later ones were seen.
    for (let round = 0; round < 8; round += 1) {
      const known = isDead ? await publish() : '';
      const session = await begin();
      open.push(session);
      expected.add(await add(session, known));
      expected.add(await addNow());
      await follow();
      if (open.length > 2) await commit(open.splice(round % 3, 1)[0]!);
      await follow();
    }
    for (const session of open) await commit(session);
    await follow();
    expect([...expected].filter((id) => !seen.has(id))).toEqual([]);
    // Following by the newest time alone does lose some: the trap is real.
    expect([...expected].filter((id) => !naive.has(id)).length).toBeGreaterThan(0);
  });
});

it('[row 90] shows what was accepted at once, whatever is still open', async () => {
  await begin();
  const id = await publish();
  const { data } = await page('/v1/events', 'limit=1');
  expect(data.map((row) => row.id)).toEqual([id]);
});

it('[row 90] orders endpoints by the database, whose transaction began first: not by the clocks of processes', async () => {
  const source = await openDataSource({
    url: stage.database.url,
    role: 'waybill_app',
    entities: [Endpoint, EndpointSecret, Subscription],
    applicationName: 'waybill-test',
    max: 1,
  });
  const { tenantId } = stage.tenant;
  const policy = parseEgressPolicy({ allow: ['127.0.0.0/8'], deny: [], allowHttp: true });
  try {
    let younger = '';
    const late = await withTenant(source, tenantId, async (tx) => {
      const { endpoint } = await createEndpoint(
        tx,
        tenantId,
        { url: stage.receiver.url },
        policy,
        testKeyring(),
      );
      younger = (await stage.addEndpoint()).id;
      const { settled_until: until } = await page('/v1/endpoints', 'limit=1');
      expect(Date.parse(until!)).toBeLessThan(endpoint.endpoint.createdAt.getTime());
      return endpoint.endpoint;
    });
    expect(idTime(late.id).getTime()).toBe(Math.floor(late.createdAt.getTime()));
    const { data } = await page('/v1/endpoints', 'limit=2');
    expect(data.map(({ id }) => id)).toEqual([younger, formatId('endpoint', late.id)]);
  } finally {
    await source.destroy();
  }
});

it('[row 90] says that it cannot tell while another login, whose transactions it may not see, has one open', async () => {
  const role = `waybill_test_stranger_${process.pid}`;
  const pool = createTestPool(stage.database.url, 1);
  await stage.pool.query(`create role ${role}`);
  try {
    await pool.query(`set session authorization ${role}`);
    // The apis' own short transactions are a stranger's too, here.
    await waitFor(async () => (await readSettledUntil(pool)) !== null, { what: 'nobody to have one open' });
    const session = await begin();
    expect(await readSettledUntil(pool)).toBeNull();
    await commit(session);
    await waitFor(async () => (await readSettledUntil(pool)) !== null, { what: 'nobody to have one open' });
  } finally {
    await pool.end();
    await stage.pool.query(`drop role ${role}`);
  }
});
