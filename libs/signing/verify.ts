import { timingSafeEqual } from 'node:crypto';
import { secretKey } from './secret.js';
import { hmacBase64 } from './sign.js';

/** Headers as Node, undici or a plain object holds them. Names in any case; a repeated header may be a list. */
export type HeaderFields = Readonly<Record<string, string | readonly string[] | undefined>>;

/** One received request, the secrets that may have signed it, and the receiver's clock. */
export interface VerifyInput {
  readonly headers: HeaderFields;
  readonly body: Uint8Array;
  readonly secrets: string | readonly string[];
  readonly nowSeconds: number;
  readonly toleranceSeconds?: number;
}

/** Why a request was refused. */
export type VerifyReason =
  | 'missing_header'
  | 'repeated_header'
  | 'bad_timestamp'
  | 'timestamp_out_of_tolerance'
  | 'bad_secret'
  | 'no_matching_signature';

/** The verdict on one received request. */
export type VerifyResult = { ok: true; timestampSeconds: number } | { ok: false; reason: VerifyReason };

const TIMESTAMP = /^(?:0|[1-9]\d{0,14})$/;
const SIGNATURE_LENGTH = 'v1,'.length + 44;

/**
 * Checks a request by Standard Webhooks: one `v1` signature over the body bytes must match one of the secrets, and the
 * timestamp must lie within the tolerance, both ends included. Never throws for what a sender wrote.
 */
export function verify({
  headers,
  body,
  secrets,
  nowSeconds,
  toleranceSeconds = 300,
}: VerifyInput): VerifyResult {
  const ids = valuesOf(headers, 'webhook-id');
  const timestamps = valuesOf(headers, 'webhook-timestamp');
  const signatures = valuesOf(headers, 'webhook-signature');
  if (ids.length > 1 || timestamps.length > 1) return { ok: false, reason: 'repeated_header' };
  const [id] = ids;
  const [timestamp] = timestamps;
  if (!id || !timestamp || signatures.length === 0) return { ok: false, reason: 'missing_header' };
  if (!TIMESTAMP.test(timestamp)) return { ok: false, reason: 'bad_timestamp' };
  const timestampSeconds = Number(timestamp);
  if (!(Math.abs(Math.floor(nowSeconds) - timestampSeconds) <= toleranceSeconds)) {
    return { ok: false, reason: 'timestamp_out_of_tolerance' };
  }
  const expected: Buffer[] = [];
  for (const secret of typeof secrets === 'string' ? [secrets] : secrets) {
    const parsed = secretKey(secret);
    if (!parsed.ok) return { ok: false, reason: 'bad_secret' };
    expected.push(Buffer.from(`v1,${hmacBase64(parsed.key, `${id}.${timestamp}.`, body)}`));
  }
  const matched = signatures.some((list) => list.split(' ').some((token) => equalsAny(token, expected)));
  return matched ? { ok: true, timestampSeconds } : { ok: false, reason: 'no_matching_signature' };
}

// The text is compared, not decoded bytes, so url-safe and unpadded spellings stay invalid. timingSafeEqual throws on
// unequal lengths, and a token of the right number of characters may still have more bytes.
function equalsAny(token: string, expected: readonly Buffer[]): boolean {
  if (token.length !== SIGNATURE_LENGTH) return false;
  const given = Buffer.from(token);
  let matched = false;
  for (const wanted of expected) {
    if (given.length === wanted.length && timingSafeEqual(given, wanted)) matched = true;
  }
  return matched;
}

function valuesOf(headers: HeaderFields, lowerName: string): string[] {
  const values: string[] = [];
  for (const [name, value] of Object.entries(headers)) {
    if (value === undefined || name.toLowerCase() !== lowerName) continue;
    if (typeof value === 'string') values.push(value);
    else values.push(...value);
  }
  return values;
}
