// Sends so many signed requests and is done: through the product's sender, or through undici as the rivals do.
import { randomUUID } from 'node:crypto';
import { answer } from '../support/answer.mjs';
import { EVENT_TYPE, SECRET } from '../support/seed.mjs';

const send =
  process.env.BENCH_SENDER === 'own'
    ? (await import('./send-own.mjs')).sendOwn
    : (await import('./send-signed.mjs')).sendSigned;

answer({
  /** Resolves when each of `count` requests has been answered by a 200. */
  send: async ({ urls, count, inFlight, payloadBytes }) => {
    let left = count;
    const sendOn = async () => {
      while (left > 0) {
        left -= 1;
        const status = await send({
          url: urls[left % urls.length],
          secret: SECRET,
          deliveryId: randomUUID(),
          eventId: randomUUID(),
          eventType: EVENT_TYPE,
          body: Buffer.from(
            `{"event":"${EVENT_TYPE}","n":${left},"text":"`.padEnd(payloadBytes - 2, 'waybill ') + '"}',
          ),
        });
        if (status !== 200) throw new Error(`a receiver answered ${status}`);
      }
    };
    await Promise.all(Array.from({ length: inFlight }, sendOn));
  },
});
