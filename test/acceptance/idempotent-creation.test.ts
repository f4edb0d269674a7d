import { randomUUID } from 'node:crypto';

import { purgeIdempotencyKeys } from '#outbox';
import { beforeAll, describe, expect, it } from 'vitest';

import type { ApiClient, ApiResponse } from '../support/api-client.js';
import { ApiStage } from '../support/api-stage.js';
import { CREATING_ROUTES, type CreationAsk, OPERATOR_KEY } from '../support/creating-routes.js';
import { declaredRoutes } from '../support/declared-routes.js';
import { expectAnyProblem, expectProblem } from '../support/expect-problem.js';
import { rowCounts, tenantRows } from '../support/row-counts.js';
import { SIZES } from '../support/sizes.js';
import { createTenantWithKey } from '../support/tenant.js';
import { waitFor } from '../support/wait-for.js';

type Answer = ApiResponse<Record<string, unknown>>;

const ENV = { WAYBILL_OPERATOR_KEY: OPERATOR_KEY };
const stage = new ApiStage({ env: ENV });
let clients: ApiClient[];

beforeAll(async () => {
  clients = [stage.client, stage.clientOf(await stage.bootApi(ENV))];
});

const post = (ask: CreationAsk, key: string | null, client = stage.client): Promise<Answer> =>
  client.post(ask.path, ask.body, { ...ask.headers, ...(key !== null && { 'idempotency-key': key }) });

const wasReplayed = ({ headers }: ApiResponse<unknown>): boolean =>
  headers['idempotency-replayed'] === 'true';

const times = <Item>(count: number, make: (index: number) => Promise<Item>): Promise<Item[]> =>
  Promise.all(Array.from({ length: count }, (_, index) => make(index)));

it('[row 10] every POST route creates once under a key, or says why it needs none', () => {
  const posts = declaredRoutes().filter(({ method }) => method === 'POST');
  expect(posts.length).toBeGreaterThan(3);
  const undecided = posts.filter(
    ({ createsOnce, createsNothing }) => createsOnce === (createsNothing !== null),
  );
  expect(undecided).toEqual([]);
  for (const { createsNothing } of posts.filter((route) => !route.createsOnce))
    expect(createsNothing!.length).toBeGreaterThan(20);
  const creating = posts.filter(({ createsOnce }) => createsOnce).map(({ name }) => name);
  expect(creating.toSorted()).toEqual(Object.keys(CREATING_ROUTES).toSorted());
});

describe.each(Object.entries(CREATING_ROUTES))('%s', (_, route) => {
  /** Runs something and gives how many resources and keys it added. */
  async function added<Result>(work: () => Promise<Result>): Promise<[Result, number, number]> {
    const before = await rowCounts(stage.pool);
    const result = await work();
    const after = await rowCounts(stage.pool);
    return [
      result,
      after[route.table] - before[route.table],
      after.idempotency_keys - before.idempotency_keys,
    ];
  }

  const withoutSecrets = (body: Record<string, unknown>) =>
    Object.fromEntries(Object.entries(body).filter(([field]) => !route.secrets.includes(field)));

  it('[row 10] gives the same resource for the same key and content, flagged, without its secret, and makes one', async () => {
    const ask = await route.ask(stage);
    const key = randomUUID();
    const [answers, made, keys] = await added(async () => [
      await post(ask, key),
      await post(ask, key),
      await post(ask, key, clients[1]),
    ]);
    expect(answers.map(({ status }) => status)).toEqual([route.status, route.status, route.status]);
    expect(answers.map(wasReplayed)).toEqual([false, true, true]);
    const [first, ...repeats] = answers as [Answer, ...Answer[]];
    for (const field of route.secrets) expect(first.body[field]).toEqual(expect.any(String));
    for (const repeat of repeats) {
      expect(repeat.body).toEqual(withoutSecrets(first.body));
      expect([repeat.headers['location'], repeat.headers['etag']]).toEqual([
        first.headers['location'],
        first.headers['etag'],
      ]);
    }
    expect([made, keys]).toEqual([1, 1]);
  });

  it('[row 10] takes the fields in another order and other white space for the same content', async () => {
    const ask = await route.ask(stage);
    const key = randomUUID();
    const first = await post(ask, key);
    const { path, body, headers } = ask;
    const text =
      body === undefined
        ? '{ }'
        : JSON.stringify(Object.fromEntries(Object.entries(body).toReversed()), null, 3);
    const again = await stage.client.post(path, text, { ...headers, 'idempotency-key': key });
    expect([again.status, wasReplayed(again), again.body['id']]).toEqual([
      route.status,
      true,
      first.body['id'],
    ]);
  });

  it('[row 11] refuses other content with 409, changes nothing, and shows nothing of what is stored', async () => {
    const [ask, other] = [await route.ask(stage), await route.ask(stage)];
    const key = randomUUID();
    const first = await post(ask, key);
    expect(first.status).toBe(route.status);
    const before = await tenantRows(stage.pool, stage.tenant.tenantId);
    const refused = await post(other, key);
    const { details, detail } = expectProblem(refused, 409, 'idempotency_conflict');
    expect([details, detail]).toEqual([undefined, 'The idempotency key was used for another request.']);
    expect(await tenantRows(stage.pool, stage.tenant.tenantId)).toEqual(before);
    // The other request is as good as ever.
    expect((await post(other, randomUUID())).status).toBe(route.status);
  });

  it('[row 12] answers six at once with one content by one resource, five of them flagged', async () => {
    const ask = await route.ask(stage);
    const key = randomUUID();
    const [answers, made, keys] = await added(() => times(6, (turn) => post(ask, key, clients[turn % 2])));
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => route.status));
    expect(new Set(answers.map(({ body }) => body['id'])).size).toBe(1);
    expect(answers.filter(wasReplayed)).toHaveLength(5);
    for (const field of route.secrets)
      expect(answers.filter(({ body }) => field in body).map(wasReplayed)).toEqual([false]);
    expect([made, keys]).toEqual([1, 1]);
  });

  it('[row 13] answers six at once with six contents by one resource and five conflicts', async () => {
    const asks: CreationAsk[] = [];
    while (asks.length < 6) asks.push(await route.ask(stage));
    const key = randomUUID();
    const [answers, made, keys] = await added(() =>
      times(6, (turn) => post(asks[turn]!, key, clients[turn % 2])),
    );
    expect(answers.filter(({ status }) => status === route.status)).toHaveLength(1);
    for (const answer of answers.filter(({ status }) => status !== route.status))
      expectProblem(answer, 409, 'idempotency_conflict');
    expect([made, keys]).toEqual([1, 1]);
  });

  it('[row 14] refuses keys of a wrong form and makes nothing', async () => {
    const ask = await route.ask(stage);
    const [, made, keys] = await added(async () => {
      for (const key of ['', 'k'.repeat(256), 'a b', 'a\tb', 'cl\u00e9'])
        expectProblem(await post(ask, key), 400, 'invalid_idempotency_key');
    });
    expect([made, keys]).toEqual([0, 0]);
    const longest = 'k'.repeat(255 - 36) + randomUUID();
    for (const key of [longest, Buffer.from(randomUUID()).toString('base64')])
      expect((await post(await route.ask(stage), key)).status).toBe(route.status);
  });

  it('[row 14] makes one for each request that brings no key', async () => {
    const ask = await route.ask(stage);
    const [answer, made, keys] = await added(() => post(ask, null));
    expect([answer.status, wasReplayed(answer), made, keys]).toEqual([route.status, false, 1, 0]);
  });

  it('[row 10] leaves the key of a request that was refused free for the next', async () => {
    const { mend, ...ask } = await route.refused(stage);
    const key = randomUUID();
    const [refused, made, keys] = await added(() => post(ask, key));
    expect(expectAnyProblem(refused).status).toBeLessThan(500);
    expect([made, keys]).toEqual([0, 0]);
    await mend();
    const taken = await post(ask, key);
    expect([taken.status, wasReplayed(taken)]).toEqual([route.status, false]);
  });

  it("[row 10] keeps another tenant's same key apart", async () => {
    const key = randomUUID();
    await post(await route.ask(stage), key);
    const stranger = await createTenantWithKey(stage.database.url);
    const theirs = stage.clientOf(stage.api, stranger.key);
    const answer = await theirs.publish('a.b', {}, { idempotencyKey: key });
    expect([answer.status, wasReplayed(answer)]).toEqual([201, false]);
  });

  it('[H20] answers fifty at once, to two processes, by one resource, each round', async () => {
    for (let round = 0; round < SIZES.creationRounds; round += 1) {
      const ask = await route.ask(stage);
      const key = randomUUID();
      const [answers, made, keys] = await added(() => times(50, (turn) => post(ask, key, clients[turn % 2])));
      expect(answers.map(({ status }) => status)).toEqual(answers.map(() => route.status));
      expect(new Set(answers.map(({ body }) => body['id'])).size).toBe(1);
      expect(answers.filter(wasReplayed)).toHaveLength(49);
      expect([made, keys]).toEqual([1, 1]);
    }
  });

  it('[row 17] [H20] [F2] gives what a killed process has committed to whoever asks again', async () => {
    const ask = await route.ask(stage);
    const key = randomUUID();
    const victim = await stage.bootApi(ENV);
    const fault = stage.proxy.on(/^commit$/i, {
      moment: 'after',
      action: { run: () => victim.kill().then(() => undefined) },
    });
    const [again, made, keys] = await added(async () => {
      await expect(post(ask, key, stage.clientOf(victim))).rejects.toThrow(/ECONNRESET|socket hang up/);
      return post(ask, key);
    });
    expect(fault.hits).toBe(1);
    expect([again.status, wasReplayed(again)]).toEqual([route.status, true]);
    for (const field of route.secrets) expect(again.body).not.toHaveProperty(field);
    expect([made, keys]).toEqual([1, 1]);
  });

  it('[H20] [F2] takes the retry of a request that was killed before its commit', async () => {
    const ask = await route.ask(stage);
    const key = randomUUID();
    const victim = await stage.bootApi(ENV);
    const fault = stage.proxy.on(/^commit$/i, {
      moment: 'before',
      action: { run: () => victim.kill().then(() => undefined) },
    });
    const [again, made, keys] = await added(async () => {
      await expect(post(ask, key, stage.clientOf(victim))).rejects.toThrow(/ECONNRESET|socket hang up/);
      return post(ask, key);
    });
    expect(fault.hits).toBe(1);
    expect([again.status, wasReplayed(again)]).toEqual([route.status, false]);
    expect([made, keys]).toEqual([1, 1]);
  });

  it('[H20] [F6] waits for a held key with no transaction open, then says to come again', async () => {
    const ask = await route.ask(stage);
    const key = randomUUID();
    const fault = stage.proxy.on(/^commit$/i, { moment: 'before', action: 'swallow' });
    const slow = post(ask, key, clients[1]);
    await fault.hit;
    let over = false;
    const waiting = times(10, () => post(ask, key)).finally(() => (over = true));
    let longest = 0;
    await waitFor(
      async () => {
        longest = Math.max(longest, await oldestWaitMs());
        return over;
      },
      { what: 'those who wait to be answered' },
    );
    for (const answer of await waiting) expectProblem(answer, 503, 'idempotency_key_in_progress');
    // Turns of 20 ms; five times that and the look-up's own time on a busy machine.
    expect(longest).toBeLessThan(1_000);
    // Others are not held up meanwhile.
    expect((await post(await route.ask(stage), randomUUID())).status).toBe(route.status);
    fault.release();
    expect((await slow).status).toBe(route.status);
    const again = await post(ask, key);
    expect([again.status, wasReplayed(again)]).toEqual([route.status, true]);
  });
});

const OF_TENANTS = Object.entries(CREATING_ROUTES).filter(([, { isOperators }]) => isOperators !== true);

describe.each(OF_TENANTS)('%s', (name, route) => {
  it('[row 11] refuses a key that any other route has used, and other routes refuse its keys', async () => {
    const key = randomUUID();
    expect((await stage.client.publish('a.b', {}, { idempotencyKey: key })).status).toBe(201);
    expectProblem(await post(await route.ask(stage), key), 409, 'idempotency_conflict');
    const own = randomUUID();
    const ask = await route.ask(stage);
    expect((await post(ask, own)).status).toBe(route.status);
    expectProblem(
      await stage.client.publish('a.b', {}, { idempotencyKey: own }),
      409,
      'idempotency_conflict',
    );
    const item = { event_type: 'a.b', payload: {}, idempotency_key: own };
    expectProblem(
      await stage.client.post('/v1/events/batch', { events: [item] }),
      409,
      'idempotency_conflict',
    );
    for (const [other, { ask: askOther }] of OF_TENANTS) {
      if (other === name) continue;
      expectProblem(await post(await askOther(stage), own), 409, 'idempotency_conflict');
    }
    expect(wasReplayed(await post(ask, own))).toBe(true);
  });
});

describe('the idempotency keys of the operator', () => {
  const { ask } = CREATING_ROUTES['POST /v1/tenants']!;

  it('[row 11] are apart from those of every tenant', async () => {
    const key = randomUUID();
    expect((await stage.client.publish('a.b', {}, { idempotencyKey: key })).status).toBe(201);
    const mine = await ask(stage);
    expect([(await post(mine, key)).status, wasReplayed(await post(mine, key))]).toEqual([201, true]);
    const again = await stage.client.publish('a.b', {}, { idempotencyKey: key });
    expect([again.status, wasReplayed(again)]).toEqual([201, true]);
  });

  it('[row 10] show the first key of a tenant once, and make it once', async () => {
    const { body, ...rest } = await ask(stage);
    const mine = { ...rest, body: { ...body, first_key: {} } };
    const key = randomUUID();
    const before = await rowCounts(stage.pool);
    const [first, again] = [await post(mine, key), await post(mine, key)];
    expect([first.body['first_key'], again.body['first_key']]).toEqual([expect.any(Object), null]);
    expect((await rowCounts(stage.pool)).api_keys).toBe(before.api_keys + 1);
  });
});

/** Of the transactions of the apis that wait for a lock, how long the oldest has been open. */
async function oldestWaitMs(): Promise<number> {
  const { rows } = await stage.pool.query<{ ms: number | null }>(
    `select max(extract(epoch from clock_timestamp() - xact_start))::double precision * 1000 as ms from pg_stat_activity
     where datname = current_database() and application_name like 'waybill-api%' and wait_event_type = 'Lock'`,
  );
  return rows[0]!.ms ?? 0;
}

describe('what was created and has changed since', () => {
  it('is shown as it is now', async () => {
    const body = { url: `${stage.receiver.url}/changing`, event_types: ['never.sent'] };
    const key = randomUUID();
    const first = await post({ path: '/v1/endpoints', body }, key);
    const path = `/v1/endpoints/${String(first.body['id'])}`;
    await stage.client.patch(path, { description: 'changed' });
    const again = await post({ path: '/v1/endpoints', body }, key);
    expect(again).toMatchObject({
      status: 201,
      body: { id: first.body['id'], description: 'changed', version: 2 },
    });
    expect(again.headers['etag']).toBe('"2"');
    await stage.client.delete(path);
    expectProblem(await post({ path: '/v1/endpoints', body }, key), 404, 'endpoint_not_found');
    const counts = await rowCounts(stage.pool);
    expectProblem(await post({ path: '/v1/endpoints', body }, key), 404, 'endpoint_not_found');
    expect(await rowCounts(stage.pool)).toEqual(counts);
  });

  it('is forgotten with its key after seven days, and not before', async () => {
    const body = { url: `${stage.receiver.url}/kept`, event_types: ['never.sent'] };
    const key = randomUUID();
    const first = await post({ path: '/v1/endpoints', body }, key);
    const shift = (age: string) =>
      stage.pool.query(
        'update waybill.idempotency_keys set created_at = now() - $2::interval where key = $1',
        [key, age],
      );
    await shift('6 days 23 hours');
    await purgeIdempotencyKeys(stage.pool, 1_000);
    const kept = await post({ path: '/v1/endpoints', body }, key);
    expect(kept.body['id']).toBe(first.body['id']);
    await shift('7 days 1 hour');
    expect(await purgeIdempotencyKeys(stage.pool, 1_000)).toBe(1);
    const fresh = await post({ path: '/v1/endpoints', body }, key);
    expect([fresh.status, wasReplayed(fresh)]).toEqual([201, false]);
    expect(fresh.body['id']).not.toBe(first.body['id']);
  });
});
