import { expect, it } from 'vitest';

import type { ApiResponse } from '../support/api-client.js';
import { ApiStage, type CreatedEndpoint, QUICK_ATTEMPTS, QUICK_RETRIES } from '../support/api-stage.js';
import { expectProblem } from '../support/expect-problem.js';
import { expectTerminal } from '../support/expect-terminal.js';

const LOUD = { WAYBILL_LOG_LEVEL: 'trace' };
const GIVEN_SECRET = `whsec_${Buffer.from('a secret that the caller brings').toString('base64')}`;

interface Accepted {
  readonly id: string;
  readonly deliveries: readonly { readonly id: string }[];
}

const stage = new ApiStage({ env: LOUD });

/** Every spelling under which a secret could slip out. */
function spellingsOf(secret: string): string[] {
  const base64 = secret.replace('whsec_', '');
  const bytes = Buffer.from(base64, 'base64');
  return [base64, bytes.toString('hex'), bytes.toString('base64url'), bytes.toString('latin1')];
}

it('[row 61] makes a secret of whsec_ and the base64 of 24 bytes when none is given, and takes a good one', async () => {
  const made = await stage.addEndpoint();
  expect(made.secret).toMatch(/^whsec_[A-Za-z0-9+/]{32}$/);
  expect(Buffer.from(made.secret.slice(6), 'base64')).toHaveLength(24);
  const other = await stage.addEndpoint();
  expect(other.secret).not.toBe(made.secret);
  expect((await stage.addEndpoint({ secret: GIVEN_SECRET })).secret).toBe(GIVEN_SECRET);
  for (const secret of [
    '',
    'short',
    'whsec_',
    'whsec_dGVzdHNlY3JldA==',
    `${GIVEN_SECRET}!`,
    GIVEN_SECRET.slice(6),
  ]) {
    const refused = await stage.client.post('/v1/endpoints', { url: stage.receiver.url, secret });
    expectProblem(refused, 422, 'validation_failed');
    if (secret.length > 6) expect(refused.text).not.toContain(secret);
  }
});

it('[row 61] [row 63] shows a secret in the answer to its creation and in no other answer, request or log line', async () => {
  const texts: string[] = [];
  const keep = <Body>(answer: ApiResponse<Body>): ApiResponse<Body> => {
    texts.push(answer.text, JSON.stringify(answer.headers));
    return answer;
  };
  const created: CreatedEndpoint[] = [
    await stage.addEndpoint(),
    await stage.addEndpoint({ secret: GIVEN_SECRET }),
  ];
  const { client } = stage;
  const posted = keep(await client.publish<Accepted>('order.paid', { n: 1 }, { idempotencyKey: 'once' }));
  keep(await client.publish('order.paid', { n: 1 }, { idempotencyKey: 'once' }));
  stage.receiver.answer(500);
  const dispatcher = await stage.bootDispatcher({ ...QUICK_RETRIES, ...LOUD });
  await expectTerminal(stage.pool, {
    receivers: [stage.receiver],
    apps: [stage.api, dispatcher],
    attemptLimit: QUICK_ATTEMPTS,
  });
  stage.receiver.answer(200);
  const [delivery] = posted.body.deliveries;
  expect(keep(await client.post(`/v1/deliveries/${delivery!.id}/replay`)).status).toBe(202);
  await expectTerminal(stage.pool, {
    receivers: [stage.receiver],
    apps: [stage.api, dispatcher],
    attemptLimit: 2 * QUICK_ATTEMPTS,
  });
  for (const path of [
    '/v1/events',
    '/v1/deliveries',
    '/v1/dead-letters',
    '/v1/endpoints',
    '/metrics',
    '/readyz',
  ])
    expect(keep(await client.get(path)).status).toBe(200);
  keep(await client.get(`/v1/events/${posted.body.id}`));
  for (const { id } of posted.body.deliveries) {
    keep(await client.get(`/v1/deliveries/${id}`));
    keep(await client.get(`/v1/dead-letters/${id}`));
  }
  for (const { id, secret } of created) {
    keep(await client.get(`/v1/endpoints/${id}`));
    keep(await client.patch(`/v1/endpoints/${id}`, { url: `${stage.receiver.url}/moved` }));
    // Refused fields are not given back either.
    keep(await client.patch(`/v1/endpoints/${id}`, { secret }));
    keep(await client.post('/v1/endpoints', { url: stage.receiver.url, secret: `${secret}=` }));
    keep(await client.post('/v1/endpoints', { url: `http://user:${secret.slice(6)}@127.0.0.1/`, secret }));
    keep(await client.post('/v1/endpoints', `{"secret":"${secret}"`));
    keep(await client.delete(`/v1/endpoints/${id}`));
  }
  texts.push(JSON.stringify((await stage.pool.query('select a::text from waybill.attempts a')).rows));
  for (const request of stage.receiver.requests)
    texts.push(JSON.stringify(request.headers), request.body.toString());
  expect((await fetchMetrics(dispatcher.url)).length).toBeGreaterThan(100);
  texts.push(await fetchMetrics(dispatcher.url));

  await Promise.all([dispatcher.stop(), stage.api.stop()]);
  const logs = [dispatcher.logText(), stage.api.logText()];
  expect(logs.map((text) => text.length > 500)).toEqual([true, true]);
  const everything = [...texts, ...logs].join('\n');
  expect(everything).toContain(posted.body.id);
  const leaked = created
    .flatMap(({ secret }) => spellingsOf(secret))
    .filter((text) => everything.includes(text));
  expect(leaked).toEqual([]);
  // Nor the key that asked for all of this: only its digest is stored.
  const keySecret = stage.tenant.key.split('_')[3]!;
  expect(everything.includes(keySecret)).toBe(false);
  const { rows } = await stage.pool.query('select k::text as row from waybill.api_keys k');
  expect(rows.filter(({ row }) => row.includes(keySecret))).toEqual([]);
});

async function fetchMetrics(url: string): Promise<string> {
  return (await fetch(new URL('/metrics', url))).text();
}
