import { AppError, type Config } from '#runtime';
import { unknownField } from '../http/dto.pipe.js';
import { OBJECT_LIMITS, scanJson, type JsonNode } from '../http/scan-json.js';
import { isNull, refusal, stringOf } from './json-value.js';
import { readEnvelope, type Envelope } from './read-envelope.js';

const MODES = ['all_or_nothing', 'per_item'] as const;

/** Whether a batch is stored whole or not at all, or each of its events by itself. */
export type BatchMode = (typeof MODES)[number];

/** A batch as it came: its events in order, each as it was read or as it was refused. */
export interface Batch {
  readonly mode: BatchMode;
  readonly items: readonly (Envelope | AppError)[];
}

/** Reads a batch. Throws for what is wrong with the whole of it; what is wrong with an event stands in its place. */
export function readBatch(
  bytes: Buffer,
  { eventBytesMax, batchEventsMax }: Pick<Config, 'eventBytesMax' | 'batchEventsMax'>,
): Batch {
  // Two levels stand around each event: it may be as deep in a batch as it may be alone.
  const depthMax = OBJECT_LIMITS.depthMax + 2;
  const root = scanJson(bytes, { ...OBJECT_LIMITS, depthMax, captureDepth: 3, itemsMax: batchEventsMax });
  const unknown = [...(root.fields?.keys() ?? [])].filter((name) => name !== 'events' && name !== 'mode');
  if (unknown.length > 0) throw unknownField(unknown);
  const mode = readMode(bytes, root.fields?.get('mode'));
  const items = root.fields?.get('events')?.items ?? null;
  if (items === null || items.length === 0) {
    throw refusal('validation_failed', 'events', 'events must be a list of at least one event.');
  }
  const rules = { eventBytesMax, nowMs: Date.now(), takesKey: true };
  return {
    mode,
    items: items.map((item, index) =>
      attempt(() => readEnvelope(bytes, item, { ...rules, path: `events[${index}].` })),
    ),
  };
}

/** The event, or its refusal thrown. */
export function orThrow(item: Envelope | AppError): Envelope {
  if (item instanceof AppError) throw item;
  return item;
}

function readMode(bytes: Buffer, node: JsonNode | undefined): BatchMode {
  if (node === undefined || isNull(bytes, node)) return 'all_or_nothing';
  const text = stringOf(bytes, node, 100);
  const mode = MODES.find((known) => known === text);
  if (mode !== undefined) return mode;
  throw refusal('validation_failed', 'mode', `mode is one of ${MODES.join(', ')}.`);
}

function attempt(read: () => Envelope): Envelope | AppError {
  try {
    return read();
  } catch (error) {
    if (error instanceof AppError) return error;
    throw error;
  }
}
