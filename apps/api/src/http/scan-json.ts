import { isUtf8 } from 'node:buffer';
import { AppError } from '#runtime';
import { endOfLiteral, endOfNumber, endOfString, refuseAt, skipSpace } from './scan-scalars.js';

/** Where a value stands in the body, and what it is; of the outer objects and arrays also what they hold. */
export interface JsonNode {
  readonly kind: 'object' | 'array' | 'string' | 'number' | 'literal';
  readonly start: number;
  /** The place behind it. */
  end: number;
  /** Of a captured object: its fields by name. */
  readonly fields: Map<string, JsonNode> | null;
  /** Of a captured array: its elements. */
  readonly items: JsonNode[] | null;
  /** Of an element of a captured array: why it must be refused, while the others are none the worse. */
  fault: AppError | null;
}

export interface ScanLimits {
  readonly depthMax: number;
  /** Object keys in the document; where an array is captured, in each of its elements. */
  readonly keysMax: number;
  /** Elements of a captured array. */
  readonly itemsMax: number;
  /** How many levels from the outside are captured, and checked for fields given twice. */
  readonly captureDepth: number;
}

/** The limits of a body that is one object. */
export const OBJECT_LIMITS: ScanLimits = { depthMax: 100, keysMax: 10_000, itemsMax: 0, captureDepth: 1 };

const COMMA = 0x2c;
const COLON = 0x3a;
const QUOTE = 0x22;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;
const OPEN_ARRAY = 0x5b;
const CLOSE_ARRAY = 0x5d;

/** An open object or array; `node` is null where nothing above captures, `name` is that of the field being read. */
interface Frame {
  readonly isObject: boolean;
  readonly node: JsonNode | null;
  name: string;
}

interface Scan {
  readonly bytes: Buffer;
  readonly limits: ScanLimits;
  readonly frames: Frame[];
  root: JsonNode | null;
  /** The element of a captured array that is being read. */
  item: JsonNode | null;
  keys: number;
  at: number;
  /** What may stand at `at`: besides it, a container just opened or behind an element may close. */
  expect: 'value' | 'key' | 'comma';
  mayClose: boolean;
}

/**
 * Checks a whole body against RFC 8259 in one pass without recursion and gives its outer values by their places, so
 * that a payload can be taken out byte for byte. Throws `invalid_encoding`, `invalid_json`, `json_too_deep`,
 * `json_too_many_keys`, `too_many_events` or `duplicate_field`; an element of a captured array keeps its own too many
 * keys and fields given twice as its fault. JSON.parse alone would not do: it keeps the last of
 * two equal names, takes any depth, and says nothing about places.
 */
export function scanJson(bytes: Buffer, limits: ScanLimits = OBJECT_LIMITS): JsonNode {
  if (!isUtf8(bytes)) throw new AppError('invalid_encoding');
  if (bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf) {
    throw new AppError('invalid_encoding', 'The body must not start with a byte order mark.');
  }
  const scan: Scan = {
    bytes,
    limits,
    frames: [],
    root: null,
    item: null,
    keys: 0,
    at: 0,
    expect: 'value',
    mayClose: false,
  };
  do {
    scan.at = skipSpace(bytes, scan.at);
    step(scan);
  } while (scan.frames.length > 0);
  scan.at = skipSpace(bytes, scan.at);
  return scan.at === bytes.length ? scan.root! : refuseAt(scan.at);
}

function step(scan: Scan): void {
  const frame = scan.frames.at(-1);
  const byte = scan.bytes[scan.at];
  if (frame !== undefined && scan.mayClose && byte === (frame.isObject ? CLOSE_OBJECT : CLOSE_ARRAY)) {
    scan.at += 1;
    if (frame.node !== null) frame.node.end = scan.at;
    if (frame.node !== null && frame.node.items !== null) endItems(scan);
    scan.frames.pop();
    scan.expect = 'comma';
  } else if (frame !== undefined && scan.expect === 'comma') {
    if (byte !== COMMA) refuseAt(scan.at);
    scan.at += 1;
    scan.expect = frame.isObject ? 'key' : 'value';
    scan.mayClose = false;
  } else if (frame !== undefined && scan.expect === 'key') {
    takeKey(scan, frame);
  } else {
    takeValue(scan, frame);
  }
}

function takeKey(scan: Scan, frame: Frame): void {
  const { bytes, limits } = scan;
  if (bytes[scan.at] !== QUOTE) refuseAt(scan.at);
  scan.keys += 1;
  if (scan.keys === limits.keysMax + 1) {
    const message = `The JSON holds more than ${limits.keysMax} object keys.`;
    refuse(scan.item, new AppError('json_too_many_keys', message));
  }
  const end = endOfString(bytes, scan.at);
  if (captures(frame.node)) frame.name = JSON.parse(bytes.toString('utf8', scan.at, end)) as string;
  scan.at = skipSpace(bytes, end);
  if (bytes[scan.at] !== COLON) refuseAt(scan.at);
  scan.at += 1;
  scan.expect = 'value';
  scan.mayClose = false;
}

function takeValue(scan: Scan, frame: Frame | undefined): void {
  const byte = scan.bytes[scan.at];
  const depth = scan.frames.length;
  const parent = frame?.node ?? null;
  const node = frame === undefined || captures(parent) ? newNode(byte, scan.at, depth, scan.limits) : null;
  if (frame === undefined) scan.root = node;
  else if (parent !== null && node !== null) attach(scan, parent, frame.name, node);
  if (byte === OPEN_OBJECT || byte === OPEN_ARRAY) {
    if (depth >= scan.limits.depthMax) {
      throw new AppError(
        'json_too_deep',
        `The JSON is nested more than ${scan.limits.depthMax} levels deep.`,
      );
    }
    scan.frames.push({ isObject: byte === OPEN_OBJECT, node, name: '' });
    scan.at += 1;
    scan.expect = byte === OPEN_OBJECT ? 'key' : 'value';
  } else {
    scan.at = endOfScalar(scan.bytes, scan.at);
    if (node !== null) node.end = scan.at;
    scan.expect = 'comma';
  }
  scan.mayClose = true;
}

function captures(node: JsonNode | null): boolean {
  return node !== null && (node.fields !== null || node.items !== null);
}

function newNode(byte: number | undefined, start: number, depth: number, limits: ScanLimits): JsonNode {
  const kind = kindOf(byte);
  const captured = depth < limits.captureDepth;
  return {
    kind,
    start,
    end: start,
    fields: captured && kind === 'object' ? new Map() : null,
    // A body that is an array is refused by whoever asked for an object: its elements are of no use.
    items: captured && kind === 'array' && depth > 0 ? [] : null,
    fault: null,
  };
}

function endItems(scan: Scan): void {
  scan.item = null;
  scan.keys = 0;
}

/** The first fault of an element counts; what belongs to none refuses the whole body. */
function refuse(item: JsonNode | null, error: AppError): void {
  if (item === null) throw error;
  item.fault ??= error;
}

function attach(scan: Scan, parent: JsonNode, name: string, node: JsonNode): void {
  if (parent.items !== null) {
    scan.keys = 0;
    scan.item = node;
    parent.items.push(node);
    if (parent.items.length > scan.limits.itemsMax) {
      throw new AppError('too_many_events', `A batch holds at most ${scan.limits.itemsMax} events.`);
    }
  } else if (parent.fields!.has(name)) {
    const details = [{ field: name.slice(0, 100), reason: 'duplicate' as const }];
    refuse(scan.item, new AppError('duplicate_field', 'A field is given twice.', { details }));
  } else {
    parent.fields!.set(name, node);
  }
}

function kindOf(byte: number | undefined): JsonNode['kind'] {
  if (byte === OPEN_OBJECT) return 'object';
  if (byte === OPEN_ARRAY) return 'array';
  if (byte === QUOTE) return 'string';
  return byte === 0x74 || byte === 0x66 || byte === 0x6e ? 'literal' : 'number';
}

function endOfScalar(bytes: Buffer, at: number): number {
  const byte = bytes[at];
  if (byte === QUOTE) return endOfString(bytes, at);
  if (byte === 0x74 || byte === 0x66 || byte === 0x6e) return endOfLiteral(bytes, at);
  return endOfNumber(bytes, at);
}
