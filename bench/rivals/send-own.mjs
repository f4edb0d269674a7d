import { createSender, parseEgressPolicy } from '#egress';
import { secretKey, sign, signingKey } from '#signing';

const sender = createSender({
  policy: parseEgressPolicy({ allow: ['127.0.0.0/8'], deny: [], allowHttp: true }),
});
const keys = new Map();

/** What `sendSigned` does, through the product's own sender. */
export async function sendOwn({ url, secret, deliveryId, eventId, eventType, body }) {
  const id = `dlv_${deliveryId.replaceAll('-', '')}`;
  const timestampSeconds = Math.floor(Date.now() / 1000);
  const result = await sender.send({
    tenantId: 'bench',
    url,
    headers: [
      ['content-type', 'application/json'],
      ['user-agent', 'Waybill/bench'],
      ['webhook-id', id],
      ['webhook-timestamp', String(timestampSeconds)],
      ['webhook-signature', sign({ id, timestampSeconds, body, keys: keysOf(secret) })],
      ['idempotency-key', id],
      ['waybill-event-id', `evt_${eventId.replaceAll('-', '')}`],
      ['waybill-event-type', eventType],
      ['waybill-attempt', '1'],
    ],
    body,
    connectTimeoutMs: 5_000,
    totalTimeoutMs: 15_000,
  });
  if (result.kind === 'failure') throw new Error(result.message);
  return result.status;
}

function keysOf(secret) {
  let found = keys.get(secret);
  if (found === undefined) keys.set(secret, (found = [signingKey(secretKey(secret).key)]));
  return found;
}
