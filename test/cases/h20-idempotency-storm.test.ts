import { randomUUID } from 'node:crypto';

import { beforeAll, expect, it } from 'vitest';

import type { ApiClient, ApiResponse } from '../support/api-client.js';
import { ApiStage, QUICK_ATTEMPTS } from '../support/api-stage.js';
import type { RunningApp } from '../support/apps.js';
import { expectProblem } from '../support/expect-problem.js';
import { expectTerminal } from '../support/expect-terminal.js';
import { rowCounts } from '../support/row-counts.js';
import { SIZES } from '../support/sizes.js';
import { createTenantWithKey } from '../support/tenant.js';
import { waitFor } from '../support/wait-for.js';

const PARALLEL = 50;

interface Accepted {
  readonly id: string;
  readonly deliveries: readonly { readonly id: string }[];
}

const stage = new ApiStage();
let second: RunningApp;
let clients: ApiClient[];

beforeAll(async () => {
  second = await stage.bootApi();
  clients = [stage.client, stage.clientOf(second)];
  for (const path of ['a', 'b']) await stage.addEndpoint({ url: `${stage.receiver.url}/${path}` });
});

function storm(key: string, payloadOf: (index: number) => object): Promise<ApiResponse<Accepted>[]> {
  const posts = Array.from({ length: PARALLEL }, (_, index) =>
    clients[index % 2]!.publish<Accepted>('storm.hit', payloadOf(index), { idempotencyKey: key }),
  );
  return Promise.all(posts);
}

const isFlagged = ({ headers }: ApiResponse<unknown>): boolean => headers['idempotency-replayed'] === 'true';

it('[H20] fifty at once with one key and body, to two processes, are one event, each round', async () => {
  const before = await rowCounts(stage.pool);
  const flaggedBy = new Set<number>();
  for (let round = 0; round < SIZES.idempotencyRounds; round += 1) {
    const answers = await storm(`round ${round}`.replace(' ', '-'), () => ({ round }));
    expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: PARALLEL }, () => 201));
    expect(new Set(answers.map(({ body }) => body.id)).size).toBe(1);
    expect(answers.filter(isFlagged)).toHaveLength(PARALLEL - 1);
    expect(new Set(answers.map(({ body }) => body.deliveries.map(({ id }) => id).join())).size).toBe(1);
    answers.forEach((answer, index) => isFlagged(answer) && flaggedBy.add(index % 2));
  }
  // Both processes met the other's key.
  expect(flaggedBy).toEqual(new Set([0, 1]));
  const after = await rowCounts(stage.pool);
  expect(after.events - before.events).toBe(SIZES.idempotencyRounds);
  expect(after.deliveries - before.deliveries).toBe(SIZES.idempotencyRounds * 2);
});

it('[H20] fifty at once with one key and fifty bodies: one is taken, the others are conflicts', async () => {
  const before = await rowCounts(stage.pool);
  const answers = await storm(randomUUID(), (index) => ({ index }));
  const taken = answers.filter(({ status }) => status === 201);
  expect(taken).toHaveLength(1);
  for (const answer of answers.filter(({ status }) => status !== 201))
    expectProblem(answer, 409, 'idempotency_conflict');
  expect((await rowCounts(stage.pool)).events - before.events).toBe(1);
});

it("[H20] another tenant's same key is another key", async () => {
  const stranger = await createTenantWithKey(stage.database.url);
  const theirs = stage.clientOf(stage.api, stranger.key);
  const key = randomUUID();
  const ours = await stage.client.publish<Accepted>('storm.hit', { whose: 'ours' }, { idempotencyKey: key });
  const first = await theirs.publish<Accepted>('storm.hit', { whose: 'theirs' }, { idempotencyKey: key });
  expect([ours.status, first.status, isFlagged(first)]).toEqual([201, 201, false]);
  expect(first.body).toMatchObject({ deliveries: [] });
  expect(first.body.id).not.toBe(ours.body.id);
  const again = await theirs.publish<Accepted>('storm.hit', { whose: 'theirs' }, { idempotencyKey: key });
  expect([again.body.id, isFlagged(again)]).toEqual([first.body.id, true]);
});

it('[H20] [F2] a key whose first request was killed in mid-transaction is free for the retry', async () => {
  const key = randomUUID();
  const victim = await stage.bootApi();
  const before = await rowCounts(stage.pool);
  let retry: Promise<ApiResponse<Accepted>> | undefined;
  const fault = stage.proxy.on(/^commit$/i, {
    moment: 'before',
    action: {
      run: async () => {
        // The retry meets the key while the first transaction is still open, and waits for it.
        retry = clients[1]!.publish<Accepted>('storm.hit', { n: 1 }, { idempotencyKey: key });
        await waitFor(hasWaiter, { what: 'the retry to wait for the key' });
        await victim.kill();
      },
    },
  });
  const event = { event_type: 'storm.hit', payload: { n: 1 }, idempotency_key: key };
  await expect(stage.clientOf(victim).post('/v1/events/batch', { events: [event] })).rejects.toThrow(
    /ECONNRESET|socket hang up/,
  );
  await fault.hit;
  expect([fault.hits, (await victim.exited).signal]).toEqual([1, 'SIGKILL']);
  const answer = await retry!;
  expect([answer.status, isFlagged(answer)]).toEqual([201, false]);
  const after = await rowCounts(stage.pool);
  expect([after.events - before.events, after.idempotency_keys - before.idempotency_keys]).toEqual([1, 1]);
  const repeated = await clients[0]!.publish<Accepted>('storm.hit', { n: 1 }, { idempotencyKey: key });
  expect([repeated.body.id, isFlagged(repeated)]).toEqual([answer.body.id, true]);
});

it('[H20] delivers each of these events once to each endpoint', async () => {
  const dispatcher = await stage.bootDispatcher();
  const { deliveries } = await rowCounts(stage.pool);
  await stage.receiver.waitFor(deliveries);
  await expectTerminal(stage.pool, {
    receivers: [stage.receiver],
    apps: [stage.api, second, dispatcher],
    attemptLimit: QUICK_ATTEMPTS,
  });
  expect(stage.receiver.requests).toHaveLength(deliveries);
});

async function hasWaiter(): Promise<boolean> {
  const { rowCount } = await stage.pool.query(
    `select 1 from pg_stat_activity
     where datname = current_database() and application_name like 'waybill-api-%' and wait_event_type = 'Lock'`,
  );
  return (rowCount ?? 0) > 0;
}
