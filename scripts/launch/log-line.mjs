import { clockText } from './paint.mjs';

const WARN = 40;
const ERROR = 50;
const SHOWN_EVENTS = new Set(['event.accepted', 'delivery.attempt']);
// What is worth a glance, in the order in which it is read; whatever is absent is left out.
const SHOWN_FIELDS = [
  'event_type',
  'event_id',
  'delivery_id',
  'endpoint_id',
  'deliveries',
  'attempt',
  'state',
  'status_code',
  'error_kind',
  'duration_ms',
  'retry_in_ms',
];

// A delivery's own id is enough to find the event and the endpoint.
const NAMED_BY_DELIVERY = new Set(['event_id', 'endpoint_id']);

/** One compact line for a log line worth seeing on a terminal, or null: an event, an attempt, or a warning. */
export function compactLine(app, line, paint) {
  const entry = parse(line);
  if (!entry) return line.trim() === '' ? null : `${paint.dim(clockText())}  ${paint.yellow(app)}  ${line}`;
  const warning = entry.level >= WARN;
  if (!warning && !SHOWN_EVENTS.has(entry.event)) return null;
  const colour = entry.level >= ERROR ? paint.red : warning ? paint.yellow : paint.cyan;
  const time = clockText(new Date(entry.time ?? Date.now()));
  const title = colour(warning ? `${app}: ${entry.msg ?? entry.event}` : entry.event);
  const names = entry.delivery_id
    ? SHOWN_FIELDS.filter((name) => !NAMED_BY_DELIVERY.has(name))
    : SHOWN_FIELDS;
  const fields = names.filter((name) => isShown(entry[name])).map((name) => fieldText(name, entry[name]));
  if (warning && entry.err?.message) fields.push(paint.dim(entry.err.message));
  return [paint.dim(time), title, ...fields].join('  ');
}

function parse(line) {
  if (!line.startsWith('{')) return null;
  try {
    return JSON.parse(line);
  } catch {
    return null;
  }
}

function isShown(value) {
  return value !== null && value !== undefined && value !== '' && typeof value !== 'object';
}

function fieldText(name, value) {
  if (name === 'duration_ms') return `${Math.round(value)} ms`;
  if (name === 'retry_in_ms') return `retry in ${(value / 1000).toFixed(1)} s`;
  if (name === 'deliveries') return `for ${value} endpoint${value === 1 ? '' : 's'}`;
  return name === 'attempt' ? `attempt ${value}` : String(value);
}
