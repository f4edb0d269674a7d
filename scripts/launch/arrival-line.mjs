import { clockText } from './paint.mjs';

/** One line for one arrival: verified or not, what, which delivery and attempt, how many bytes, how it was answered. */
export function arrivalLine(arrival, paint) {
  const mark = arrival.verified ? paint.green('✓ verified') : paint.red('✗ refused');
  const parts = [
    paint.dim(clockText()),
    mark,
    paint.bold(arrival.eventType),
    arrival.deliveryId,
    `attempt ${arrival.attempt}`,
    `${arrival.body.length} bytes`,
  ];
  if (arrival.status === 500) parts.push(paint.yellow('answered 500 as asked'));
  if (arrival.reason) parts.push(paint.red(arrival.reason));
  return parts.join('  ');
}

/** The first characters of a body on one line, with control characters made harmless for a terminal. */
export function bodyStart(body, characters = 200) {
  const text = body.subarray(0, characters * 4).toString('utf8');
  // oxlint-disable-next-line no-control-regex
  const plain = text.replaceAll(/\s+/g, ' ').replaceAll(/[\u0000-\u001F\u007F-\u009F]/g, '·');
  return plain.length > characters ? `${plain.slice(0, characters)}…` : plain;
}
