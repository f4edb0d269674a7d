import { beforeAll, describe, expect, it } from 'vitest';

import type { ApiClient, ApiResponse } from '../support/api-client.js';
import { ACCEPT, ApiStage, type CreatedEndpoint, QUICK_ATTEMPTS } from '../support/api-stage.js';
import { createTestPool } from '../support/database.js';
import { expectProblem } from '../support/expect-problem.js';
import { expectTerminal } from '../support/expect-terminal.js';
import { rowCounts } from '../support/row-counts.js';
import { waitFor } from '../support/wait-for.js';

interface Accepted {
  readonly id: string;
  readonly created_at: string;
  readonly deliveries: readonly {
    readonly id: string;
    readonly endpoint_id: string;
    readonly state: string;
  }[];
}

const stage = new ApiStage();
let endpoints: CreatedEndpoint[];

beforeAll(async () => {
  endpoints = [];
  for (const path of ['one', 'two', 'three'])
    endpoints.push(
      await stage.addEndpoint({ url: `${stage.receiver.url}/${path}`, event_types: ['three.*'] }),
    );
});

/** What a connection that is opened now sees of the events with this mark in their payload. */
async function seenByFreshConnection(
  mark: string,
): Promise<{ events: number; deliveries: number; queued: number }> {
  const pool = createTestPool(stage.database.url, 1);
  try {
    const { rows } = await pool.query(
      `with marked as (select tenant_id, id from waybill.events where position($1::bytea in payload) > 0)
       select (select count(*)::integer from marked) as events,
         (select count(*)::integer from waybill.deliveries d join marked m on m.id = d.event_id) as deliveries,
         (select count(*)::integer from waybill.delivery_queue q join marked m on m.id = q.event_id) as queued`,
      [Buffer.from(mark)],
    );
    return rows[0];
  } finally {
    await pool.end();
  }
}

const NOTHING = { events: 0, deliveries: 0, queued: 0 };

/** The two ways in: one event is one statement, a batch is a transaction around it. */
const DOORS = {
  'POST /v1/events': {
    post: (client: ApiClient, mark: string): Promise<ApiResponse<object>> =>
      client.publish('three.things', { mark }),
    /** The statement whose end makes it durable. */
    commit: ACCEPT,
    owed: { events: 1, deliveries: 3, queued: 3 },
  },
  'POST /v1/events/batch': {
    post: (client: ApiClient, mark: string): Promise<ApiResponse<object>> =>
      client.post('/v1/events/batch', {
        events: [1, 2].map((number) => ({ event_type: 'three.things', payload: { mark, number } })),
      }),
    commit: /^commit$/i,
    owed: { events: 2, deliveries: 6, queued: 6 },
  },
};

describe.each(Object.entries(DOORS))('%s', (_door, { post, commit, owed }) => {
  it('[row 1] answers 2xx only when a fresh connection already sees the event and all its deliveries', async () => {
    const mark = `row1-${owed.events}`;
    const uncommitted = stage.proxy.on(commit, { moment: 'before', action: 'swallow' });
    let answered = false;
    const answer = post(stage.client, mark).finally(() => (answered = true));
    await uncommitted.hit;
    // The api goes on working meanwhile, so it had time to answer.
    for (let round = 0; round < 5; round += 1)
      expect(await stage.client.get('/v1/events')).toMatchObject({ status: 200 });
    expect(await seenByFreshConnection(mark)).toEqual(NOTHING);
    expect(answered).toBe(false);
    uncommitted.release();
    expect(await answer).toMatchObject({ status: 201 });
    expect(await seenByFreshConnection(mark)).toEqual(owed);
    expect(uncommitted.hits).toBe(1);
  });

  it('[row 2] answers an error and stores nothing when the second of three delivery inserts fails', async () => {
    const mark = `row2-${owed.events}`;
    const before = await rowCounts(stage.pool);
    await stage.pool.query(`
      create sequence public.delivery_inserts;
      grant usage on sequence public.delivery_inserts to waybill_intake;
      create function public.fail_second() returns trigger language plpgsql as $$
      begin
        if nextval('public.delivery_inserts') = 2 then raise exception 'planted by the test'; end if;
        return new;
      end $$;
      create trigger fail_second before insert on waybill.deliveries
        for each row execute function public.fail_second();
    `);
    try {
      expectProblem(await post(stage.client, mark), 500, 'internal_error');
      const { rows } = await stage.pool.query('select last_value::integer from public.delivery_inserts');
      expect(rows).toEqual([{ last_value: 2 }]);
      expect(await rowCounts(stage.pool)).toEqual(before);
    } finally {
      await stage.pool.query(`
        drop trigger fail_second on waybill.deliveries;
        drop function public.fail_second();
        drop sequence public.delivery_inserts;
      `);
    }
    expect(await post(stage.client, mark)).toMatchObject({ status: 201 });
    expect(await seenByFreshConnection(mark)).toEqual(owed);
  });

  it('[row 3] [F2] leaves no row when the api is killed before the commit, and the client saw no 2xx', async () => {
    const mark = `row3-${owed.events}`;
    const before = await rowCounts(stage.pool);
    const api = await stage.bootApi();
    const fault = stage.proxy.on(commit, {
      moment: 'before',
      action: { run: async () => void (await api.kill()) },
    });
    await expect(post(stage.clientOf(api), mark)).rejects.toThrow(/ECONNRESET|socket hang up/);
    expect([fault.hits, (await api.exited).signal]).toEqual([1, 'SIGKILL']);
    const restarted = stage.clientOf(await stage.bootApi());
    await waitFor(async () => (await openTransactions()) === 0, { what: 'the killed transaction to end' });
    expect(await rowCounts(stage.pool)).toEqual(before);
    expect(await post(restarted, mark)).toMatchObject({ status: 201 });
    expect(await seenByFreshConnection(mark)).toEqual(owed);
  });

  it('[row 4] [F2] delivers everything when the api is killed after the commit and before the answer', async () => {
    const mark = `row4-${owed.events}`;
    const api = await stage.bootApi();
    const fault = stage.proxy.on(commit, {
      moment: 'after',
      action: { run: async () => void (await api.kill()) },
    });
    await expect(post(stage.clientOf(api), mark)).rejects.toThrow(/ECONNRESET|socket hang up/);
    expect([fault.hits, (await api.exited).signal]).toEqual([1, 'SIGKILL']);
    expect(await seenByFreshConnection(mark)).toEqual(owed);
    const dispatcher = await stage.bootDispatcher();
    const marked = () => stage.receiver.requests.filter(({ body }) => body.includes(mark));
    await waitFor(() => marked().length === owed.deliveries, { what: 'every delivery of the lost answer' });
    expect(new Set(marked().map(({ path }) => path))).toEqual(new Set(['/one', '/two', '/three']));
    await expectTerminal(stage.pool, {
      receivers: [stage.receiver],
      apps: [stage.api, dispatcher],
      attemptLimit: QUICK_ATTEMPTS,
    });
    await dispatcher.stop();
  });

  it('[F6] answers 503 for a lost reply to the commit, whether or not it took place', async () => {
    const mark = `lost-${owed.events}`;
    const unseen = stage.proxy.on(commit, { moment: 'before', action: 'cut' });
    expectProblem(await post(stage.client, mark), 503, 'database_unavailable');
    expect(unseen.hits).toBe(1);
    await waitFor(async () => (await openTransactions()) === 0, { what: 'the cut transaction to end' });
    expect(await seenByFreshConnection(mark)).toEqual(NOTHING);
    const committed = stage.proxy.on(commit, { moment: 'after', action: 'cut' });
    expectProblem(await post(stage.client, mark), 503, 'database_unavailable');
    expect(committed.hits).toBe(1);
    expect(await seenByFreshConnection(mark)).toEqual(owed);
  });
});

it('[F5] answers 503 when a lock is held for too long, and takes the event when it is free again', async () => {
  const holder = await stage.pool.connect();
  await holder.query('begin');
  await holder.query('lock table waybill.events in access exclusive mode');
  expectProblem(await stage.client.publish('three.locked', { mark: 'locked' }), 503, 'database_unavailable');
  await holder.query('commit');
  holder.release();
  expect(await seenByFreshConnection('locked')).toEqual(NOTHING);
  expect(await stage.client.publish('three.locked', { mark: 'locked' })).toMatchObject({ status: 201 });
  expect(await seenByFreshConnection('locked')).toEqual({ events: 1, deliveries: 3, queued: 3 });
});

async function openTransactions(): Promise<number> {
  const { rowCount } = await stage.pool.query(
    `select 1 from pg_stat_activity
     where datname = current_database() and application_name like 'waybill-api-%' and xact_start is not null`,
  );
  return rowCount ?? 0;
}

it('[row 5] takes an event that nobody is subscribed to: no deliveries, and it can be read', async () => {
  const posted = await stage.client.publish<Accepted>('nobody.cares', { for: 'this' });
  expect(posted).toMatchObject({ status: 201, body: { deliveries: [] } });
  const read = await stage.client.get(`/v1/events/${posted.body.id}`);
  expect(read).toMatchObject({
    status: 200,
    body: {
      id: posted.body.id,
      event_type: 'nobody.cares',
      target_count: 0,
      deliveries: [],
      payload: { for: 'this' },
    },
  });
  expect(posted.headers['location']).toBe(`/v1/events/${posted.body.id}`);
});

it('[row 7] answers 100 posts while every receiver hangs, waiting for none of them', async () => {
  const dispatcher = await stage.bootDispatcher();
  stage.receiver.hold();
  const startedAt = performance.now();
  const posts = await Promise.all(
    Array.from({ length: 100 }, (_, number) => stage.client.publish<Accepted>('three.hanging', { number })),
  );
  // 0.3 s when measured; the receivers answer only when they are released.
  expect(performance.now() - startedAt).toBeLessThan(8_000);
  expect(posts.map(({ status }) => status)).toEqual(Array.from({ length: 100 }, () => 201));
  await waitFor(() => stage.receiver.held >= 10, { what: 'requests that hang at the receiver' });
  expect(await stage.client.publish('three.hanging', { number: 100 })).toMatchObject({ status: 201 });
  expect(stage.receiver.held).toBeGreaterThanOrEqual(10);
  stage.receiver.release();
  await expectTerminal(stage.pool, {
    receivers: [stage.receiver],
    apps: [stage.api, dispatcher],
    attemptLimit: QUICK_ATTEMPTS,
  });
  const hung = posts.flatMap(({ body }) =>
    body.deliveries.map(({ id }) => stage.receiver.requestsFor(id).length),
  );
  expect(hung).toEqual(Array.from({ length: 300 }, () => 1));
  await dispatcher.stop();
});

it('[row 8] lets the database refuse a second row for one event and endpoint', async () => {
  const { body } = await stage.client.publish<Accepted>('three.unique', {});
  expect(body.deliveries).toHaveLength(endpoints.length);
  for (const table of ['deliveries', 'delivery_queue']) {
    const twice = stage.pool.query(
      `insert into waybill.${table} select * from waybill.${table} where event_id = $1 limit 1`,
      [body.id.slice(4)],
    );
    await expect(twice).rejects.toMatchObject({ code: '23505' });
  }
});

it("[row 9] hands the receiver the producer's exact bytes", async () => {
  const payload = ' {"z":1, "a":12345678901234567890123,\t"\\u0000":"a\\u0000b","n":1.0E+2,"a":-0 }';
  const posted = await stage.client.publish<Accepted>('three.bytes', Buffer.from(payload));
  expect(posted.status).toBe(201);
  const dispatcher = await stage.bootDispatcher();
  await stage.receiver.waitFor(() =>
    posted.body.deliveries.every(({ id }) => stage.receiver.requestsFor(id).length === 1),
  );
  for (const { id } of posted.body.deliveries)
    expect(stage.receiver.requestsFor(id)[0]!.body.toString('utf8')).toBe(payload.trim());
  const read = await stage.client.get(`/v1/events/${posted.body.id}`);
  expect(read.text.endsWith(`,"payload":${payload.trim()}}`)).toBe(true);
  await expectTerminal(stage.pool, {
    receivers: [stage.receiver],
    apps: [stage.api, dispatcher],
    attemptLimit: QUICK_ATTEMPTS,
  });
});
