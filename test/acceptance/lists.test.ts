import { beforeAll, describe, expect, it } from 'vitest';

import type { ApiResponse } from '../support/api-client.js';
import { ApiStage } from '../support/api-stage.js';
import { expectProblem } from '../support/expect-problem.js';
import { createTenantWithKey } from '../support/tenant.js';

interface Row {
  readonly id?: string;
  readonly delivery_id?: string;
  readonly created_at?: string;
  readonly died_at?: string;
}

interface Page {
  readonly data: readonly Row[];
  readonly next_cursor: string | null;
}

const ROWS = 120;

const stage = new ApiStage();

const idOf = ({ id, delivery_id }: Row): string => id ?? delivery_id!;

/** 120 endpoints of one millisecond, and 120 events of one statement with a dead delivery each, all at one time. */
beforeAll(async () => {
  const { tenantId } = stage.tenant;
  const events = Array.from({ length: ROWS }, (_, n) => ({
    event_type: n % 2 ? 'odd.one' : 'even.one',
    payload: n,
  }));
  await stage.addEndpoint({ event_types: ['even.one', 'odd.one'] });
  expect(await stage.client.post('/v1/events/batch', { events })).toMatchObject({ status: 201 });
  await stage.pool.query(
    `insert into waybill.endpoints (tenant_id, id, url)
     select $1, waybill.event_id('2026-01-01', gen_random_uuid()), 'http://127.0.0.1/' from generate_series(2, ${ROWS})`,
    [tenantId],
  );
  await stage.pool.query(
    `with died as (
       update waybill.deliveries set state = 'dead', finished_at = now() where tenant_id = $1 returning *
     ),
     unowed as (delete from waybill.delivery_queue where tenant_id = $1)
     insert into waybill.dead_letters (tenant_id, event_id, endpoint_id, delivery_id, reason, attempt_count, died_at)
     select tenant_id, event_id, endpoint_id, id, 'exhausted', 4, date_trunc('second', now()) + interval '123456 microseconds' from died`,
    [tenantId],
  );
});

async function readAll(path: string, limit: number, between?: () => Promise<unknown>): Promise<Row[][]> {
  const pages: Row[][] = [];
  for (let cursor: string | null = ''; cursor !== null;) {
    const join = path.includes('?') ? '&' : '?';
    const { status, body }: ApiResponse<Page> = await stage.client.get<Page>(
      `${path}${join}limit=${limit}${cursor === '' ? '' : `&cursor=${cursor}`}`,
    );
    expect(status).toBe(200);
    pages.push([...body.data]);
    cursor = body.next_cursor;
    await between?.();
  }
  return pages;
}

describe.each(['/v1/events', '/v1/deliveries', '/v1/dead-letters', '/v1/endpoints'])(
  '[row 90] %s',
  (path) => {
    it('gives 120 rows of one time as 50, 50 and 20, no row twice and none left out', async () => {
      const pages = await readAll(path, 50);
      expect(pages.map(({ length }) => length)).toEqual([50, 50, 20]);
      const ids = pages.flat().map(idOf);
      expect(new Set(ids).size).toBe(ROWS);
      const times = new Set(pages.flat().map((row) => row.died_at ?? row.created_at));
      // Endpoints share the millisecond of their ids, which is what they are ordered by.
      if (path !== '/v1/endpoints') expect(times.size).toBe(1);
      expect((await readAll(path, 7)).flat().map(idOf)).toEqual(ids);
      expect((await stage.client.get<Page>(path)).body.data).toHaveLength(50);
    });

    it.each([60, 40])('ends without a further page when the last one of %i is full', async (limit) => {
      const pages = await readAll(path, limit);
      expect(pages.map(({ length }) => length)).toEqual(Array.from({ length: ROWS / limit }, () => limit));
    });
  },
);

it('[row 90] shows no row twice while others are added in front', async () => {
  const add = () => stage.client.publish('later.one', {});
  const pages = await readAll('/v1/events?event_type=odd.one', 20, add);
  expect(pages.map(({ length }) => length)).toEqual([20, 20, 20]);
  const all = (await readAll('/v1/events', 25, add)).flat().map(idOf);
  expect(new Set(all).size).toBe(all.length);
});

it('[row 90] takes no cursor of another list, of another tenant, or cut short', async () => {
  const lists = ['/v1/events', '/v1/deliveries', '/v1/dead-letters', '/v1/endpoints'];
  const stranger = stage.clientOf(stage.api, (await createTenantWithKey(stage.database.url)).key);
  for (const path of lists) {
    const { next_cursor: cursor } = (await stage.client.get<Page>(`${path}?limit=1`)).body;
    for (const other of lists.filter((list) => list !== path))
      expectProblem(await stage.client.get(`${other}?cursor=${cursor}`), 422, 'invalid_cursor');
    expectProblem(await stranger.get(`${path}?cursor=${cursor}`), 422, 'invalid_cursor');
    for (let length = 1; length < cursor!.length; length += 5)
      expectProblem(
        await stage.client.get(`${path}?cursor=${cursor!.slice(0, length)}`),
        422,
        'invalid_cursor',
      );
    expect((await stage.client.get(`${path}?cursor=${cursor}`)).status).toBe(200);
  }
});

it.each([
  ['/v1/events', 'created', 'created_at', 'event_type=odd.one&'],
  ['/v1/deliveries', 'created', 'created_at', 'state=dead&'],
  ['/v1/dead-letters', 'died', 'died_at', ''],
] as const)(
  '[row 91] %s takes both bounds as exclusive, refuses an impossible range, and gives an empty page for no match',
  async (path, name, field, filter) => {
    const [after, before] = [`${name}_after`, `${name}_before`];
    const query = path === '/v1/events' ? `?${filter}limit=1` : '?limit=1';
    const at = (await stage.client.get<Page>(path + query)).body.data[0]![field]!;
    const shifted = (ms: number): string => new Date(Date.parse(at) + ms).toISOString();
    const count = async (bounds: string): Promise<number> =>
      (await readAll(`${path}?${filter}${bounds}`, 100)).flat().length;
    const all = path === '/v1/events' ? ROWS / 2 : ROWS;
    expect(await count(`${after}=${shifted(-1)}&${before}=${shifted(1)}`)).toBe(all);
    expect(await count(`${after}=${at}`)).toBe(0);
    expect(await count(`${before}=${at}`)).toBe(0);
    for (const [from, to] of [
      [at, at],
      [shifted(1), at],
    ])
      expectProblem(
        await stage.client.get(`${path}?${after}=${from}&${before}=${to}`),
        422,
        'validation_failed',
      );
    const empty = await stage.client.get(`${path}?${before}=1999-01-01T00:00:00Z`);
    expect(empty).toMatchObject({ status: 200, body: { data: [], next_cursor: null } });
  },
);
