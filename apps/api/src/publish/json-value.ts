import { AppError, type DetailReason, type ErrorCode } from '#runtime';
import type { JsonNode } from '../http/scan-json.js';

/** The text of a string value, or null when it is none or longer than any acceptable one. */
export function stringOf(bytes: Buffer, node: JsonNode, bytesMax: number): string | null {
  if (node.kind !== 'string' || node.end - node.start > bytesMax) return null;
  return JSON.parse(bytes.toString('utf8', node.start, node.end)) as string;
}

/** Whether a value is `null`, which means the same as leaving it out. */
export function isNull(bytes: Buffer, node: JsonNode): boolean {
  return node.kind === 'literal' && bytes[node.start] === 0x6e;
}

/** A refusal that names its place. */
export function refusal(
  code: ErrorCode,
  field: string,
  message: string,
  reason: DetailReason = 'invalid',
): AppError {
  return new AppError(code, message, { details: [{ field, reason }] });
}
