import { describe, expect, it } from 'vitest';

import { ApiStage, QUICK_ATTEMPTS, QUICK_RETRIES } from '../support/api-stage.js';
import { expectProblem } from '../support/expect-problem.js';
import { expectTerminal } from '../support/expect-terminal.js';
import { startPgProxy } from '../support/pg-proxy.js';
import { rowCounts } from '../support/row-counts.js';

interface Accepted {
  readonly id: string;
  readonly deliveries: readonly { readonly id: string }[];
}

const EVENT_BYTES_MAX = 262_144;
const SIZES = [7_900, 8_000, 8_192, 200_000, EVENT_BYTES_MAX - 1, EVENT_BYTES_MAX];
/** More endpoints than the names of which fit into one notification. */
const FAN_OUT = 150;

const stage = new ApiStage();

/** JSON of exactly so many bytes; a rare character now and then, so that bytes and characters differ. */
function payloadOf(bytes: number): Buffer {
  const rest = bytes - 2;
  const text = 'é'.repeat(Math.floor(rest / 4)) + 'x'.repeat(rest - 2 * Math.floor(rest / 4));
  return Buffer.from(`"${text}"`);
}

async function publishAndReceive(payload: Buffer, eventType = 'size.tried'): Promise<void> {
  const posted = await stage.client.publish<Accepted>(eventType, payload);
  expect(posted.status).toBe(201);
  const ids = posted.body.deliveries.map(({ id }) => id);
  await stage.receiver.waitFor(() => ids.every((id) => stage.receiver.requestsFor(id).length === 1));
  for (const id of ids) expect(stage.receiver.requestsFor(id)[0]!.body.equals(payload)).toBe(true);
}

describe.each(['with notifications', 'without notifications'])('[H17] %s', (how) => {
  it('takes and delivers payloads of every size up to the limit', async () => {
    if (how === 'with notifications') await stage.addEndpoint({ event_types: ['size.*'] });
    const proxy = await startPgProxy(stage.database.url);
    const broken =
      how === 'without notifications'
        ? proxy.on(/^listen/i, { moment: 'before', action: 'cut', times: Infinity })
        : undefined;
    // A dispatcher that hears nothing finds its work by polling, here every 300 ms.
    const dispatcher = await stage.bootDispatcher({ ...QUICK_RETRIES, WAYBILL_POLL_MS: '300' }, proxy.url);
    for (const bytes of SIZES) await publishAndReceive(payloadOf(bytes));
    if (broken !== undefined) expect(broken.hits).toBeGreaterThan(0);
    else expect([...proxy.statements.keys()].some((sql) => /^listen/i.test(sql))).toBe(true);
    await expectTerminal(stage.pool, {
      receivers: [stage.receiver],
      apps: [stage.api, dispatcher],
      attemptLimit: QUICK_ATTEMPTS,
    });
    await dispatcher.stop();
    await proxy.close();
  });
});

it('[H17] delivers one event to more endpoints than one notification could name', async () => {
  await stage.pool.query(
    `with made as (
       insert into waybill.endpoints (tenant_id, id, url)
       select $1, gen_random_uuid(), $2 from generate_series(1, $3::integer)
       returning tenant_id, id
     ),
     keyed as (
       insert into waybill.endpoint_secrets (tenant_id, endpoint_id, id, secret)
       select tenant_id, id, gen_random_uuid(), $4 from made
     )
     insert into waybill.subscriptions (tenant_id, endpoint_id, event_type) select tenant_id, id, 'fan.out' from made`,
    [stage.tenant.tenantId, stage.receiver.url, FAN_OUT, `whsec_${Buffer.alloc(24, 1).toString('base64')}`],
  );
  const dispatcher = await stage.bootDispatcher();
  const before = stage.receiver.requests.length;
  await publishAndReceive(payloadOf(8_000), 'fan.out');
  expect(stage.receiver.requests.length - before).toBe(FAN_OUT);
  expect(stage.api.logs().filter(({ event }) => event === 'hint.failed')).toEqual([]);
  await expectTerminal(stage.pool, {
    receivers: [stage.receiver],
    apps: [stage.api, dispatcher],
    attemptLimit: QUICK_ATTEMPTS,
  });
});

it('[H17] refuses one byte more than the limit, alone and in a batch, and stores nothing', async () => {
  const before = await rowCounts(stage.pool);
  const tooLarge = payloadOf(EVENT_BYTES_MAX + 1);
  expectProblem(await stage.client.publish('size.tried', tooLarge), 413, 'event_too_large');
  const batch = `{"events":[{"event_type":"size.tried","payload":1},{"event_type":"size.tried","payload":${tooLarge.toString()}}]}`;
  expectProblem(await stage.client.post('/v1/events/batch', batch), 413, 'event_too_large');
  expect(await rowCounts(stage.pool)).toEqual(before);
});
