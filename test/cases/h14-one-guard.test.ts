import { randomBytes } from 'node:crypto';

import { beforeAll, expect, it } from 'vitest';

import type { ApiClient } from '../support/api-client.js';
import { ApiStage, QUICK_RETRIES } from '../support/api-stage.js';
import type { RunningApp } from '../support/apps.js';
import { expectProblem } from '../support/expect-problem.js';
import { rowCounts } from '../support/row-counts.js';
import { waitFor } from '../support/wait-for.js';
import { WRITING_ROUTES, type WritingScene } from '../support/writing-routes.js';

/** Plain http is let through, so that the address alone is what is refused; nothing is allowed. */
const GUARDED = { WAYBILL_EGRESS_ALLOW: undefined, WAYBILL_ALLOW_HTTP: 'true' };

const stage = new ApiStage({ env: GUARDED });
let client: ApiClient;
let planted: string;

/** A row that got past every check of the API, as by hand or from a backup. */
async function plantEndpoint(url: string, eventType: string): Promise<string> {
  const { rows } = await stage.pool.query<{ id: string }>(
    `with added as (
       insert into waybill.endpoints (tenant_id, id, url) values ($1, gen_random_uuid(), $2) returning tenant_id, id
     ),
     keyed as (
       insert into waybill.endpoint_secrets (tenant_id, endpoint_id, id, secret)
       select tenant_id, id, gen_random_uuid(), $3 from added
     ),
     subscribed as (
       insert into waybill.subscriptions (tenant_id, endpoint_id, event_type) select tenant_id, id, $4 from added
     )
     select 'ep_' || replace(id::text, '-', '') as id from added`,
    [stage.tenant.tenantId, url, `whsec_${randomBytes(24).toString('base64')}`, eventType],
  );
  return rows[0]!.id;
}

beforeAll(async () => {
  client = stage.client;
  planted = await plantEndpoint('https://receiver.example/', 'never.sent');
});

it('[H14] [row 65] every route that takes a URL refuses an address inside, in any disguise, and stores nothing', async () => {
  const { port } = new URL(stage.receiver.url);
  const scene = { stage, endpoint: { id: planted } } as WritingScene;
  const taking = Object.entries(WRITING_ROUTES).filter(([name]) =>
    /^(POST|PATCH) \/v1\/endpoints(\/:id)?$/.test(name),
  );
  expect(taking.length).toBeGreaterThan(1);
  const before = await rowCounts(stage.pool);
  for (const [name, route] of taking) {
    for (const host of [
      '127.0.0.1',
      '[::ffff:7f00:1]',
      '[::1]',
      'localhost',
      '2130706433',
      '0x7f.1',
      '10.0.0.1',
      '169.254.169.254',
    ]) {
      const body = { ...(route.body(scene) as object), url: `http://${host}:${port}/` };
      const send = name.startsWith('PATCH') ? client.patch : client.post;
      expectProblem(await send(route.path(scene), body), 422, 'invalid_destination');
    }
  }
  expect(await rowCounts(stage.pool)).toEqual(before);
});

it('[H14] [row 65] a stored one is not connected to, by delivery, retry, replay or as an added delivery', async () => {
  const { port } = new URL(stage.receiver.url);
  const dispatcher: RunningApp = await stage.bootDispatcher({ ...QUICK_RETRIES, ...GUARDED });
  const urls = [`http://127.0.0.1:${port}/`, `http://[::ffff:7f00:1]:${port}/`];
  for (const [index, url] of urls.entries()) {
    const endpointId = await plantEndpoint(url, `to.planted${index}`);
    const published = await client.publish<{ id: string; deliveries: { id: string }[] }>(
      `to.planted${index}`,
      {},
    );
    const other = await client.publish<{ id: string }>('to.nobody', {});
    const added = await client.post<{ id: string }>(`/v1/events/${other.body.id}/deliveries`, {
      endpoint_id: endpointId,
    });
    expect(added.status).toBe(201);
    for (const id of [published.body.deliveries[0]!.id, added.body.id]) {
      await untilDead(id);
      expect((await client.post(`/v1/deliveries/${id}/replay`)).status).toBe(202);
      const { last_error_kind: kind } = await untilDead(id);
      expect(kind).toBe('egress_blocked');
    }
  }
  await dispatcher.stop();
  expect(stage.receiver.requests).toEqual([]);
});

interface Shown {
  readonly state: string;
  readonly last_error_kind: string;
}

function untilDead(id: string): Promise<Shown> {
  return waitFor(
    async () => {
      const { body } = await client.get<Shown>(`/v1/deliveries/${id}`);
      return body.state === 'dead' && body;
    },
    { what: `${id} to be dead` },
  );
}
