import { Webhook as StandardWebhook } from 'standardwebhooks';
import { Webhook as SvixWebhook } from 'svix';

import type { ReceivedRequest } from './receiver.js';

/**
 * Checks a request's signature over its raw bytes by two libraries that others wrote. Throws what they throw; the
 * body must be JSON, since both parse what they have verified.
 */
export function verifySignature(request: ReceivedRequest, secret: string): void {
  const headers = Object.fromEntries(request.headers.map(([name, value]) => [name.toLowerCase(), value]));
  const body = request.body.toString('utf8');
  new StandardWebhook(secret).verify(body, headers);
  new SvixWebhook(secret).verify(body, headers);
}
