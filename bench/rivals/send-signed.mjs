import { Pool } from 'undici';
import { secretKey, sign, signingKey } from '#signing';

const keys = new Map();
const pools = new Map();

/**
 * Sends one job as the product would: the same headers, signature and body bytes, over undici's fastest door with
 * kept connections. Resolves with the status once the answer is read.
 */
export function sendSigned({ url, secret, deliveryId, eventId, eventType, body }) {
  const { pool, path } = poolOf(url);
  const id = `dlv_${deliveryId.replaceAll('-', '')}`;
  const timestampSeconds = Math.floor(Date.now() / 1000);
  const headers = [
    'accept-encoding',
    'identity',
    'content-type',
    'application/json',
    'user-agent',
    'Waybill/bench',
    'webhook-id',
    id,
    'webhook-timestamp',
    String(timestampSeconds),
    'webhook-signature',
    sign({ id, timestampSeconds, body, keys: keysOf(secret) }),
    'idempotency-key',
    id,
    'waybill-event-id',
    `evt_${eventId.replaceAll('-', '')}`,
    'waybill-event-type',
    eventType,
    'waybill-attempt',
    '1',
  ];
  return new Promise((resolve, reject) => {
    pool.dispatch({ method: 'POST', path, headers, body }, new Answer(resolve, reject));
  });
}

class Answer {
  #resolve;
  #reject;
  #status = 0;

  constructor(resolve, reject) {
    this.#resolve = resolve;
    this.#reject = reject;
  }

  onConnect() {}

  onHeaders(status) {
    this.#status = status;
    return true;
  }

  onData() {
    return true;
  }

  onComplete() {
    this.#resolve(this.#status);
  }

  onError(error) {
    this.#reject(error);
  }
}

function poolOf(url) {
  let found = pools.get(url);
  if (found === undefined) {
    const { origin, pathname } = new URL(url);
    found = { pool: new Pool(origin, { connections: 64 }), path: pathname };
    pools.set(url, found);
  }
  return found;
}

function keysOf(secret) {
  let found = keys.get(secret);
  if (found === undefined) keys.set(secret, (found = [signingKey(secretKey(secret).key)]));
  return found;
}
