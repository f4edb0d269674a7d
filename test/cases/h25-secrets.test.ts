import { createHmac } from 'node:crypto';

import { verify } from '#signing';
import { Webhook as StandardWebhook } from 'standardwebhooks';
import { Webhook as SvixWebhook } from 'svix';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { expectDrained } from '../support/expect-drained.js';
import { BRISK, BRISK_ATTEMPTS, openPlatform, type Platform } from '../support/platform.js';

let platform: Platform;
beforeAll(async () => {
  platform = await openPlatform();
  await Promise.all([
    platform.bootApi({ WAYBILL_LOG_LEVEL: 'trace' }),
    platform.bootDispatcher({ ...BRISK, WAYBILL_LOG_LEVEL: 'trace' }),
  ]);
});
afterAll(() => platform.close());

function secretOf(bytes: number, fill = 0xa7): string {
  return `whsec_${Buffer.alloc(bytes, fill).toString('base64')}`;
}

describe('[H25] an endpoint with a secret of the user', () => {
  it.each([
    ['bad base64', `whsec_${'*'.repeat(32)}`],
    ['base64 of the url alphabet', `whsec_${'_-'.repeat(16)}`],
    ['base64 without its padding', `whsec_${Buffer.alloc(25, 1).toString('base64').replaceAll('=', '')}`],
    ['base64 with something after it', `${secretOf(24)}\n`],
    ['23 bytes', secretOf(23)],
    ['65 bytes', secretOf(65)],
    ['nothing behind the prefix', 'whsec_'],
    ['another prefix', secretOf(24).replace('whsec_', 'whpk_')],
    ['no prefix', secretOf(24).slice('whsec_'.length)],
    ['an empty text', ''],
  ])('is refused: %s', async (_, secret) => {
    const answer = await platform.client.post('/v1/endpoints', { url: 'http://127.0.0.1:8499/', secret });
    expect([answer.status, answer.body['code']]).toEqual([422, 'validation_failed']);
    expect(answer.body['details']).toMatchObject([{ field: 'secret' }]);
    // A prefix alone, or nothing, is in many a text.
    const leaks = secret.length > 'whsec_'.length && answer.text.includes(secret.trim());
    expect(leaks).toBe(false);
    const { rows } = await platform.pool.query(
      `select from waybill.endpoints where url = 'http://127.0.0.1:8499/'`,
    );
    expect(rows).toEqual([]);
  });

  it.each([24, 64])('signs with a secret of %d bytes as the reference libraries do', async (bytes) => {
    const receiver = await platform.startReceiver();
    const secret = secretOf(bytes, bytes);
    const type = `secret.of${bytes}`;
    const endpoint = await platform.addEndpoint(receiver.url, { secret, event_types: [type] });
    expect(endpoint.secret).toBe(secret);
    await platform.publish('{"n":136.0}', type);
    const [request] = await receiver.waitFor(1);
    const headers = Object.fromEntries(request!.headers);
    const id = request!.header('webhook-id')!;
    const timestamp = request!.header('webhook-timestamp')!;
    const byHand = createHmac('sha256', Buffer.alloc(bytes, bytes))
      .update(`${id}.${timestamp}.{"n":136.0}`)
      .digest('base64');
    expect(request!.header('webhook-signature')).toBe(`v1,${byHand}`);
    new StandardWebhook(secret).verify(request!.body, headers);
    new SvixWebhook(secret).verify(request!.body, headers);
    // The other direction: what they sign, ours takes.
    const body = request!.body;
    const signature = new StandardWebhook(secret).sign(id, new Date(Number(timestamp) * 1000), body);
    expect(
      verify({
        headers: { ...headers, 'webhook-signature': signature },
        body,
        secrets: secret,
        nowSeconds: Number(timestamp),
      }),
    ).toMatchObject({ ok: true });
  });
});

describe('[H25] [row 63] a secret', () => {
  it('stands in the answer that made it and in no list, detail, delivery, error or log', async () => {
    const receiver = await platform.startReceiver();
    const endpoint = await platform.addEndpoint(receiver.url, { event_types: ['secret.kept'] });
    const secrets = [endpoint.secret, secretOf(24, 24), secretOf(64, 64)].map((secret) =>
      secret.slice('whsec_'.length),
    );
    const event = await platform.publish({ a: 1 }, 'secret.kept');
    const delivery = event.deliveries[0]!.id;
    await platform.untilState(delivery, 'succeeded');
    const { client } = platform;
    const answers = [
      await client.get('/v1/endpoints'),
      await client.get(`/v1/endpoints/${endpoint.id}`),
      await client.patch(`/v1/endpoints/${endpoint.id}`, { description: 'changed' }),
      await client.patch(`/v1/endpoints/${endpoint.id}`, { secret: endpoint.secret }),
      await client.get('/v1/deliveries'),
      await client.get(`/v1/deliveries/${delivery}`),
      await client.get(`/v1/events/${event.id}`),
      await client.post('/v1/endpoints', { url: receiver.url, secret: `${endpoint.secret}x` }),
      await client.post('/v1/endpoints', `{"url":"${receiver.url}","secret":"${endpoint.secret}"`),
      await client.post('/v1/endpoints', { url: receiver.url, [endpoint.secret.slice(6)]: 1 }),
    ];
    const [listed] = answers;
    expect((listed!.body['data'] as unknown[]).length).toBeGreaterThanOrEqual(3);
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 422, 200, 200, 200, 422, 400, 422]);
    // The field's name that the client made of it may come back to the client; nothing else may.
    const said = [
      ...answers.slice(0, -1).map(({ text }) => text),
      ...platform.apps.map((app) => app.logText()),
    ];
    for (const secret of secrets) expect(said.filter((text) => text.includes(secret))).toEqual([]);
    expect(platform.apps.map((app) => app.logText()).join('')).toContain('delivery.attempt');
    const { rows } = await platform.pool.query(
      `select from waybill.endpoint_secrets where endpoint_id = $1::uuid and secret is null and sealed_secret is not null`,
      [endpoint.id.slice('ep_'.length)],
    );
    expect(rows).toHaveLength(1);
    await expectDrained(platform, { attemptLimit: BRISK_ATTEMPTS });
  });
});
