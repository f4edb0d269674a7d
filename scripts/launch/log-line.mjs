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
  'outcome',
  'state',
  'status',
  'reason',
  'error',
  'duration_ms',
];

/** One compact line for a log line worth seeing on a terminal, or null: an event, an attempt, or a warning. */
export function compactLine(app, line, paint) {
  const entry = parse(line);
  if (!entry) return line.trim() === '' ? null : `${paint.dim(clockText())}  ${paint.yellow(app)}  ${line}`;
  const warning = entry.level >= WARN;
  if (!warning && !SHOWN_EVENTS.has(entry.event)) return null;
  const colour = entry.level >= ERROR ? paint.red : warning ? paint.yellow : paint.cyan;
  const time = clockText(new Date(entry.time ?? Date.now()));
  const title = colour(warning ? `${app}: ${entry.msg ?? entry.event}` : entry.event);
  const fields = SHOWN_FIELDS.filter((name) => isShown(entry[name])).map((name) =>
    fieldText(name, entry[name]),
  );
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
  return /^(attempt|status|deliveries)$/.test(name) ? `${name} ${value}` : String(value);
}
