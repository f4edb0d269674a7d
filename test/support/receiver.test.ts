import { afterEach, beforeEach, describe, expect, it } from 'vitest';

import { createClient } from './api-client.js';
import { type Receiver, startRawReceiver, startReceiver } from './receiver.js';

let receiver: Receiver;

beforeEach(async () => {
  receiver = await startReceiver();
});
afterEach(() => receiver.close());

const post = (path: string, body: string | Buffer, headers = {}) =>
  createClient(receiver.url, null).post(path, body, headers);

describe('a receiver', () => {
  it('records method, path, raw headers and raw bytes', async () => {
    const body = Buffer.from([0, 255, 0x7b, 13, 10]);
    await post('/hook?a=1', body, { 'X-Twice': ['1', '2'], 'webhook-id': 'dlv_1' });
    const [request] = receiver.requestsFor('dlv_1');
    expect(request).toMatchObject({ method: 'POST', path: '/hook?a=1', deliveryId: 'dlv_1', openAtOnce: 1 });
    expect(request!.body.equals(body)).toBe(true);
    expect(request!.headers.filter(([name]) => name === 'X-Twice')).toEqual([
      ['X-Twice', '1'],
      ['X-Twice', '2'],
    ]);
    expect(request!.header('x-twice')).toBe('1');
    expect(Math.abs(request!.at - Date.now())).toBeLessThan(10_000);
  });

  it('answers as it is told: a status, a whole answer, a function, a reset', async () => {
    expect((await post('/', '{}')).status).toBe(200);
    receiver.answer(503);
    expect((await post('/', '{}')).status).toBe(503);
    receiver.answer({ status: 429, headers: { 'retry-after': '7' }, body: 'slow down', delayMs: 20 });
    expect(await post('/', '{}')).toMatchObject({
      status: 429,
      text: 'slow down',
      headers: { 'retry-after': '7' },
    });
    receiver.answer(({ path }) => (path === '/gone' ? 410 : 204));
    expect((await post('/gone', '{}')).status).toBe(410);
    receiver.answer('reset');
    await expect(post('/', '{}')).rejects.toThrow(/ECONNRESET|hang up/);
    expect(receiver.requests).toHaveLength(5);
  });

  it('holds requests until their release and counts what was open at once', async () => {
    receiver.hold();
    const answers = ['dlv_1', 'dlv_1', 'dlv_2'].map((id) => post('/', '{}', { 'webhook-id': id }));
    await receiver.waitFor(3);
    expect(receiver).toMatchObject({ held: 3, maxOpen: 3, maxOpenPerDelivery: 2 });
    expect(receiver.uniqueDeliveries().toSorted()).toEqual(['dlv_1', 'dlv_2']);
    receiver.release(418);
    expect((await Promise.all(answers)).map(({ status }) => status)).toEqual([418, 418, 418]);
    expect((await post('/', '{}')).status).toBe(200);
    expect(receiver.requests.at(-1)!.openAtOnce).toBe(1);
  });

  it('calls back while the sender still waits', async () => {
    let openThen = 0;
    const forget = receiver.onRequest(({ openAtOnce }) => void (openThen = openAtOnce));
    await post('/', '{}');
    expect(openThen).toBe(1);
    forget();
    openThen = 0;
    await post('/', '{}');
    expect(openThen).toBe(0);
  });

  it('says what it waited for in vain', async () => {
    await post('/', '{}');
    await expect(receiver.waitFor(2, 30)).rejects.toThrow(
      'gave up waiting for 2 requests after 30 ms; 1 arrived',
    );
  });

  it('tells connections apart', async () => {
    const client = createClient(receiver.url, null, { keepAlive: true });
    await client.post('/', '{}');
    await client.post('/', '{}');
    await post('/', '{}');
    const [first, second, third] = receiver.requests.map(({ socketId }) => socketId);
    expect([second === first, third === first]).toEqual([true, false]);
    client.close();
  });
});

describe('a raw receiver', () => {
  it('sends bytes that no HTTP library would and keeps what it got', async () => {
    const raw = await startRawReceiver(({ socket }) => socket.end('HTTP/1.1 099 Odd\r\n\r\n'));
    const { status } = await createClient(`http://127.0.0.1:${raw.port}`, null).post('/x', 'abc');
    expect([status, raw.opened.length]).toEqual([99, 1]);
    expect(raw.requests[0]!.toString()).toMatch(/^POST \/x HTTP\/1.1\r\n[^]*\r\n\r\nabc$/);
    await raw.untilClosed(1);
    await raw.close();
  });
});
