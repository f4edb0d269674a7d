import type { IncomingMessage } from 'node:http';
import { AppError } from '#runtime';
import { unknownField } from '../http/dto.pipe.js';
import { readBody } from '../http/read-body.js';
import { scanJson } from '../http/scan-json.js';

const BODY_BYTES_MAX = 65_536;

/**
 * For a route that takes no fields: nothing and an empty JSON object will do. Anything else is refused, so that a field
 * meant for another route is not silently nothing.
 */
export async function refuseBody(request: IncomingMessage): Promise<void> {
  const { 'content-length': length, 'transfer-encoding': coding } = request.headers;
  if (coding === undefined && Number(length ?? 0) === 0) return;
  const bytes = await readBody(request, BODY_BYTES_MAX);
  if (bytes.length === 0) return;
  const { kind, fields } = scanJson(bytes);
  if (kind !== 'object')
    throw new AppError('validation_failed', 'The body must be empty, or an empty JSON object.');
  const names = [...(fields?.keys() ?? [])];
  if (names.length > 0) throw unknownField(names);
}
