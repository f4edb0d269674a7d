import { createHash } from 'node:crypto';
import type { Envelope } from './read-envelope.js';

/**
 * What "the same content" means under one idempotency key: type, payload bytes, time, metadata and the consumer as it was
 * named, each with its length before it, so that no part can pass for the end of another. Without a consumer there is no
 * part for it, as before there were any: a key used then still stands for the same.
 */
export function fingerprint(envelope: Envelope): Buffer {
  const hash = createHash('sha256');
  const parts = [
    Buffer.from(envelope.eventType),
    envelope.payload,
    Buffer.from(envelope.notBefore?.toISOString() ?? ''),
    Buffer.from(envelope.metadata ?? ''),
    ...(envelope.consumer === null ? [] : [Buffer.from(envelope.consumer.uid ?? envelope.consumer.id)]),
  ];
  for (const part of parts) {
    const length = Buffer.alloc(4);
    length.writeUInt32BE(part.length);
    hash.update(length).update(part);
  }
  return hash.digest();
}
