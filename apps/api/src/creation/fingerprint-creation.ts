import { createHash } from 'node:crypto';
import { canonicalJson } from './canonical-json.js';

/** All that a creating request asks for. */
export interface CreationContent {
  readonly method: string;
  /** The route as it is declared, `/v1/deliveries/:id/replay`: no spelling of a target makes another one of it. */
  readonly route: string;
  readonly params: object;
  /** The parsed body; a request without one asks for the same as one with an empty object. */
  readonly body: unknown;
}

/**
 * What "the same content" means under one idempotency key where a body's meaning counts and not its bytes: method, route,
 * path parameters and the body whatever its order and white space. Events have their own (publish/fingerprint.ts), whose
 * first part is an event type: no method and space can begin one, so the two never meet.
 */
export function fingerprintCreation({ method, route, params, body }: CreationContent): Buffer {
  const hash = createHash('sha256');
  for (const part of [`${method} ${route}`, canonicalJson(params), canonicalJson(body ?? {})]) {
    const bytes = Buffer.from(part);
    const length = Buffer.alloc(4);
    length.writeUInt32BE(bytes.length);
    hash.update(length).update(bytes);
  }
  return hash.digest();
}
