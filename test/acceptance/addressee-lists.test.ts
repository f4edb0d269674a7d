import { beforeAll, describe, expect, it } from 'vitest';

import type { ApiResponse } from '../support/api-client.js';
import { ApiStage } from '../support/api-stage.js';

const stage = new ApiStage();
let c1: string;

/** Two consumers and the tenant itself, with two endpoints each and two events that are owed to both. */
beforeAll(async () => {
  for (const consumer of ['c1', 'c2', undefined]) {
    if (consumer !== undefined) await stage.client.post('/v1/consumers', { uid: consumer });
    await stage.addEndpoint({ consumer });
    await stage.addEndpoint({ consumer });
    for (const payload of [{}, {}]) await stage.client.publish('a.b', payload, { consumer });
  }
  c1 = (await stage.client.get<{ id: string }>('/v1/consumers/c1')).body.id;
});

describe('a list', () => {
  interface Row {
    readonly id: string;
    readonly consumer_id: string | null;
  }

  interface Page {
    readonly data: readonly Row[];
    readonly next_cursor: string | null;
  }

  it.each(['/v1/events', '/v1/deliveries', '/v1/deliveries?state=pending', '/v1/deliveries?state=dead'])(
    'of %s shows one consumer’s, by uid and by id, and whose each row is',
    async (path) => {
      for (const consumer of ['c1', 'c2', undefined]) await stage.client.publish('a.b', {}, { consumer });
      await stage.pool.query(
        `with died as (
           update waybill.deliveries set state = 'dead', finished_at = now()
           where event_id in (select id from waybill.events order by id desc limit 3) and state = 'pending' returning *
         ),
         unowed as (delete from waybill.delivery_queue where event_id in (select event_id from died))
         insert into waybill.dead_letters (tenant_id, event_id, endpoint_id, delivery_id, reason, attempt_count, died_at)
         select tenant_id, event_id, endpoint_id, id, 'exhausted', 4, now() from died`,
      );
      const join = path.includes('?') ? '&' : '?';
      const all = (await readAll(`${path}${join}limit=100`)).filter((row) => row.consumer_id === c1);
      expect(all.length).toBeGreaterThan(1);
      for (const consumer of ['c1', c1]) {
        for (const limit of [2, 100])
          expect(await readAll(`${path}${join}consumer=${consumer}&limit=${limit}`)).toEqual(all);
      }
      expect(await readAll(`${path}${join}consumer=con_${'0'.repeat(32)}`)).toEqual([]);
    },
  );

  async function readAll(path: string): Promise<Row[]> {
    const rows: Row[] = [];
    for (let cursor: string | null = ''; cursor !== null;) {
      const { status, body }: ApiResponse<Page> = await stage.client.get<Page>(
        cursor === '' ? path : `${path}&cursor=${cursor}`,
      );
      expect(status).toBe(200);
      rows.push(...body.data);
      cursor = body.next_cursor;
    }
    return rows;
  }
});
