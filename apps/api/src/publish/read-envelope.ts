import { isEventType } from '#endpoints';
import { readConsumerReference, type ConsumerReference } from '#runtime';
import { unknownField } from '../http/dto.pipe.js';
import { readTime } from '../http/read-time.js';
import type { JsonNode } from '../http/scan-json.js';
import { readIdempotencyKey } from './idempotency-key.js';
import { isNull, refusal, stringOf } from './json-value.js';
import { readMetadata } from './read-metadata.js';

/** What a producer says about one event, and the bytes of its payload as they came. */
export interface Envelope {
  /** Null for an event of the tenant itself. */
  readonly consumer: ConsumerReference | null;
  readonly eventType: string;
  readonly payload: Buffer;
  readonly notBefore: Date | null;
  /** The metadata as compact JSON, in the producer's order. */
  readonly metadata: string | null;
  /** Of an event in a batch. */
  readonly idempotencyKey: string | null;
}

export interface EnvelopeRules {
  readonly eventBytesMax: number;
  readonly nowMs: number;
  /** How the answer names the event, as a prefix: '' or 'events[3].'. */
  readonly path: string;
  /** In a batch each event brings its own key; alone it comes as a header. */
  readonly takesKey: boolean;
}

const FIELDS = new Set(['event_type', 'payload', 'consumer', 'not_before', 'metadata']);
const DELAY_DAYS_MAX = 30;

// A character takes at most six bytes as an escape: a longer text cannot be within its limit.
const EVENT_TYPE_BYTES_MAX = 256 * 6 + 2;
const CONSUMER_BYTES_MAX = 255 * 6 + 2;
const TIME_BYTES_MAX = 64 * 6 + 2;
const KEY_BYTES_MAX = 255 * 6 + 2;

/**
 * Reads one event from its place in the body. The payload is cut out, never parsed; only the small fields beside it
 * are.
 */
export function readEnvelope(bytes: Buffer, node: JsonNode, rules: EnvelopeRules): Envelope {
  const { path, takesKey } = rules;
  if (node.fault !== null) throw node.fault;
  const fields = node.fields;
  if (fields === null) {
    throw refusal(
      'validation_failed',
      path === '' ? 'body' : path.slice(0, -1),
      'An event must be a JSON object.',
    );
  }
  const unknown = [...fields.keys()].filter(
    (name) => !FIELDS.has(name) && !(takesKey && name === 'idempotency_key'),
  );
  if (unknown.length > 0) throw unknownField(unknown.map((name) => path + name));
  return {
    eventType: readEventType(bytes, fields.get('event_type'), path),
    payload: readPayload(bytes, fields.get('payload'), rules),
    consumer: readConsumer(bytes, fields.get('consumer'), path),
    notBefore: readNotBefore(bytes, fields.get('not_before'), rules),
    metadata: readMetadata(bytes, fields.get('metadata'), path),
    idempotencyKey: readKey(bytes, fields.get('idempotency_key'), path),
  };
}

function readEventType(bytes: Buffer, node: JsonNode | undefined, path: string): string {
  const field = `${path}event_type`;
  if (node === undefined) throw refusal('validation_failed', field, 'event_type is missing.', 'missing');
  const text = stringOf(bytes, node, EVENT_TYPE_BYTES_MAX);
  if (text !== null && isEventType(text)) return text;
  const rule =
    'An event type is dot-separated segments of [A-Za-z0-9_-], at most 256 characters, not under waybill.';
  throw refusal('invalid_event_type', field, rule);
}

function readPayload(
  bytes: Buffer,
  node: JsonNode | undefined,
  { path, eventBytesMax }: EnvelopeRules,
): Buffer {
  const field = `${path}payload`;
  if (node === undefined) throw refusal('validation_failed', field, 'payload is missing.', 'missing');
  if (node.end - node.start <= eventBytesMax) return bytes.subarray(node.start, node.end);
  throw refusal('event_too_large', field, `A payload has at most ${eventBytesMax} bytes.`, 'too_large');
}

function readConsumer(bytes: Buffer, node: JsonNode | undefined, path: string): ConsumerReference | null {
  if (node === undefined || isNull(bytes, node)) return null;
  return readConsumerReference(stringOf(bytes, node, CONSUMER_BYTES_MAX), `${path}consumer`);
}

function readNotBefore(
  bytes: Buffer,
  node: JsonNode | undefined,
  { path, nowMs }: EnvelopeRules,
): Date | null {
  if (node === undefined || isNull(bytes, node)) return null;
  const text = stringOf(bytes, node, TIME_BYTES_MAX);
  const time = text === null ? null : readTime(text);
  if (time !== null && time.getTime() <= nowMs + DELAY_DAYS_MAX * 86_400_000) return time;
  const rule = `not_before is a time by RFC 3339, at most ${DELAY_DAYS_MAX} days ahead.`;
  throw refusal('validation_failed', `${path}not_before`, rule);
}

function readKey(bytes: Buffer, node: JsonNode | undefined, path: string): string | null {
  if (node === undefined || isNull(bytes, node)) return null;
  const key = readIdempotencyKey(stringOf(bytes, node, KEY_BYTES_MAX));
  if (key !== null) return key;
  throw refusal(
    'invalid_idempotency_key',
    `${path}idempotency_key`,
    'An idempotency key is 1 to 255 visible ASCII characters.',
  );
}
