// The ceiling: the same signed requests from one process, no database, nothing remembered.
import { randomUUID } from 'node:crypto';
import { answer } from '../support/answer.mjs';
import { EVENT_TYPE, SECRET } from '../support/seed.mjs';
import { sendSigned } from './send-signed.mjs';

let urls = [];
let left = 0;

answer({
  prepare: (input) => {
    urls = input.urls;
    left = input.count;
  },
  go: ({ inFlight }) => {
    for (let lane = 0; lane < inFlight; lane += 1) void sendOn();
  },
});

async function sendOn() {
  while (left > 0) {
    left -= 1;
    await sendSigned({
      url: urls[left % urls.length],
      secret: SECRET,
      deliveryId: randomUUID(),
      eventId: randomUUID(),
      eventType: EVENT_TYPE,
      body: Buffer.from(`{"event":"${EVENT_TYPE}","n":${left},"text":"`.padEnd(298, 'waybill ') + '"}'),
    });
  }
}
