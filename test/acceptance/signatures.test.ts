import { createHmac } from 'node:crypto';

import { verify } from '#signing';
import { Webhook as StandardWebhook } from 'standardwebhooks';
import { Webhook as SvixWebhook } from 'svix';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { BRISK_ATTEMPTS, openPlatform, type Platform, type ShownEndpoint } from '../support/platform.js';
import { expectDrained } from '../support/expect-drained.js';
import type { ReceivedRequest, Receiver } from '../support/receiver.js';

// Numbers and spellings that no JSON parser gives back.
const PAYLOAD = '{ "b":136.0,"a":12345678901234567890,"u":"\\u00e9\\u0000","e":1E5 }';

let platform: Platform;
beforeAll(async () => {
  platform = await openPlatform();
  await Promise.all([platform.bootApi(), platform.bootDispatcher()]);
});
afterAll(async () => {
  try {
    for (const receiver of platform.receivers) receiver.answer(200);
    await expectDrained(platform, { attemptLimit: BRISK_ATTEMPTS });
  } finally {
    await platform.close();
  }
});

function headersOf(request: ReceivedRequest): Record<string, string> {
  return Object.fromEntries(request.headers);
}

/** Throws unless both reference libraries, by their own clock, and our own verifier take the request. */
function verifyByAll(request: ReceivedRequest, secret: string): void {
  const text = request.body.toString('utf8');
  new StandardWebhook(secret).verify(text, headersOf(request));
  new SvixWebhook(secret).verify(text, headersOf(request));
  expect(ownVerdict(request, secret)).toMatchObject({ ok: true });
}

function ownVerdict(request: ReceivedRequest, secret: string, shiftSeconds = 0) {
  const nowSeconds = Number(request.header('webhook-timestamp')) + shiftSeconds;
  return verify({ headers: headersOf(request), body: request.body, secrets: secret, nowSeconds });
}

async function openEndpoint(fields: object = {}): Promise<{ receiver: Receiver; endpoint: ShownEndpoint }> {
  const receiver = await platform.startReceiver();
  const endpoint = await platform.addEndpoint(receiver.url, { event_types: ['signed.sent'], ...fields });
  return { receiver, endpoint };
}

describe('a delivery as a receiver gets it', () => {
  it('[row 58] [row 61] is signed with the generated secret over the exact bytes, id and timestamp', async () => {
    const { receiver, endpoint } = await openEndpoint();
    const event = await platform.publish(PAYLOAD, 'signed.sent');
    const [request] = await receiver.waitFor(1);
    expect(endpoint.secret).toMatch(/^whsec_[A-Za-z0-9+/]{32}$/);
    const key = Buffer.from(endpoint.secret.slice('whsec_'.length), 'base64');
    expect(key).toHaveLength(24);
    expect(request!.body.toString('utf8')).toBe(PAYLOAD);
    // The signature once more, from the specification and node:crypto alone.
    const head = `${request!.header('webhook-id')}.${request!.header('webhook-timestamp')}.`;
    const expected = createHmac('sha256', key).update(head).update(request!.body).digest('base64');
    expect(request!.header('webhook-signature')).toBe(`v1,${expected}`);
    expect(request!.deliveryId).toBe(event.deliveries.find(({ endpoint_id: id }) => id === endpoint.id)!.id);
    verifyByAll(request!, endpoint.secret);
  });

  it('[row 59] keeps its ids over three attempts while each has a fresh timestamp and verifies', async () => {
    const { receiver, endpoint } = await openEndpoint();
    // A timestamp has whole seconds: an attempt is answered only when the next second has begun.
    const statuses = [500, 503, 200];
    receiver.answer(async (request) => {
      const signedSecond = Number(request.header('webhook-timestamp'));
      const waitMs = Math.max(0, (signedSecond + 1) * 1000 - Date.now());
      return { status: statuses.shift() ?? 200, delayMs: waitMs > 900 ? 900 : waitMs };
    });
    await platform.publish(PAYLOAD, 'signed.sent');
    const requests = await receiver.waitFor(3);
    const values = (name: string): (string | undefined)[] => requests.map((request) => request.header(name));
    expect(new Set(values('webhook-id')).size).toBe(1);
    expect(values('idempotency-key')).toEqual(values('webhook-id'));
    expect(values('waybill-attempt')).toEqual(['1', '2', '3']);
    expect(new Set(values('webhook-timestamp')).size).toBe(3);
    expect(new Set(values('webhook-signature')).size).toBe(3);
    for (const request of requests) {
      expect(request.body.toString('utf8')).toBe(PAYLOAD);
      expect(Math.abs(Number(request.header('webhook-timestamp')) * 1000 - request.at)).toBeLessThan(5_000);
      verifyByAll(request, endpoint.secret);
    }
  });

  it('[row 60] is taken within 300 s either way, under any header case, and refused otherwise', async () => {
    const { receiver, endpoint } = await openEndpoint();
    await platform.publish(PAYLOAD, 'signed.sent');
    const [request] = await receiver.waitFor(1);
    const verdict = (changes: object, shiftSeconds = 0) =>
      ownVerdict({ ...request!, ...changes }, endpoint.secret, shiftSeconds);
    const withHeader = (name: string, value: string) => ({
      headers: request!.headers.map(([found, old]) => [found, found === name ? value : old]),
    });
    const signature = request!.header('webhook-signature')!;
    expect([-300, 300].map((shift) => verdict({}, shift).ok)).toEqual([true, true]);
    expect([-301, 301].map((shift) => verdict({}, shift))).toEqual([
      { ok: false, reason: 'timestamp_out_of_tolerance' },
      { ok: false, reason: 'timestamp_out_of_tolerance' },
    ]);
    expect(
      verdict({ headers: request!.headers.map(([name, value]) => [name.toUpperCase(), value]) }).ok,
    ).toBe(true);
    expect(verdict(withHeader('webhook-signature', `v1,${'A'.repeat(43)}= ${signature}`)).ok).toBe(true);
    const tampered = Buffer.from(request!.body);
    tampered[5]! ^= 1;
    const refused = [
      verdict({ body: tampered }),
      verdict({ body: request!.body.subarray(1) }),
      verdict(withHeader('webhook-id', 'dlv_0')),
      verdict(withHeader('webhook-signature', signature.replace('v1,', 'v2,'))),
      ownVerdict(request!, `whsec_${Buffer.alloc(24).toString('base64')}`),
    ];
    expect(refused).toEqual(refused.map(() => ({ ok: false, reason: 'no_matching_signature' })));
    expect(() => new StandardWebhook(endpoint.secret).verify(tampered, headersOf(request!))).toThrow(
      'No matching signature',
    );
  });
});
