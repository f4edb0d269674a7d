import type { IncomingMessage } from 'node:http';
import type { Config } from '#runtime';
import { readBody } from '../http/read-body.js';
import { scanJson } from '../http/scan-json.js';
import { readEnvelope, type Envelope } from './read-envelope.js';

/** What the envelope around a payload may take. */
const ENVELOPE_BYTES_MAX = 65_536;

/** The one event that a request's body is. */
export async function readSingleEvent(
  request: IncomingMessage,
  { eventBytesMax }: Pick<Config, 'eventBytesMax'>,
): Promise<Envelope> {
  const bytes = await readBody(request, eventBytesMax + ENVELOPE_BYTES_MAX);
  const rules = { eventBytesMax, nowMs: Date.now(), path: '', takesKey: false };
  return readEnvelope(bytes, scanJson(bytes), rules);
}
