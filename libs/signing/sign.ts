import { createHmac, type KeyObject } from 'node:crypto';

/** What a signature covers, and the live secrets to sign with. */
export interface SignInput {
  readonly id: string;
  readonly timestampSeconds: number;
  readonly body: Uint8Array;
  readonly keys: readonly KeyObject[];
}

/** Gives the value of `webhook-signature`: one `v1,<base64>` per key, in order, over exactly these body bytes. */
export function sign({ id, timestampSeconds, body, keys }: SignInput): string {
  if (!Number.isSafeInteger(timestampSeconds)) throw new RangeError('timestampSeconds must be an integer');
  const head = `${id}.${timestampSeconds}.`;
  let signatures = '';
  for (const key of keys) {
    signatures += `${signatures === '' ? '' : ' '}v1,${hmacBase64(key, head, body)}`;
  }
  return signatures;
}

/** The HMAC-SHA256 of `head` followed by `body`, in padded base64. */
export function hmacBase64(key: KeyObject | Uint8Array, head: string, body: Uint8Array): string {
  return createHmac('sha256', key).update(head).update(body).digest('base64');
}
