import { IDEMPOTENCY_KEY } from '../src/publish/idempotency-key.js';

interface HeaderText {
  readonly name: string;
  readonly description: string;
  readonly schema: Readonly<Record<string, unknown>>;
  readonly example: string | number;
}

/** The request headers that a route may take, by their names in lower case. */
export const REQUEST_HEADERS: Readonly<Record<string, HeaderText>> = {
  'idempotency-key': {
    name: 'Idempotency-Key',
    description:
      'Makes a retry safe, for seven days: the same key and content give the first answer again, other content a 409.',
    schema: { type: 'string', pattern: IDEMPOTENCY_KEY.source },
    example: 'order-1042-created',
  },
  'if-match': {
    name: 'If-Match',
    description: 'Changes only the version that has this ETag (one of a list, or `*`); another gets 412.',
    schema: { type: 'string' },
    example: '"1"',
  },
};

/** The headers of answers, by their names in lower case. `required` where an answer that has it always has it. */
export const RESPONSE_HEADERS: Readonly<Record<string, HeaderText & { readonly required: boolean }>> = {
  'x-request-id': {
    name: 'X-Request-Id',
    description: 'The id of the request: your own where it is plain enough, else a new one.',
    schema: { type: 'string', pattern: '^[A-Za-z0-9._-]{1,128}$' },
    example: 'req_0f3c9a8b7d6e5f4a3b2c1d0e9f8a7b6c',
    required: true,
  },
  location: {
    name: 'Location',
    description: 'Where what was made can be read.',
    schema: { type: 'string', format: 'uri-reference' },
    example: '/v1/events/evt_019b0f5e7c1a7d3e8f4b2a6c9d0e1f23',
    required: true,
  },
  etag: {
    name: 'ETag',
    description: 'The version of what is answered.',
    schema: { type: 'string' },
    example: '"1"',
    required: true,
  },
  'idempotency-replayed': {
    name: 'Idempotency-Replayed',
    description:
      '`true` when all that is answered was stored before, under the same key; else absent. What is shown once is then left out.',
    schema: { type: 'string', enum: ['true'] },
    example: 'true',
    required: false,
  },
  'retry-after': {
    name: 'Retry-After',
    description: 'Seconds after which to try again.',
    schema: { type: 'integer', minimum: 1 },
    example: 1,
    required: true,
  },
  'www-authenticate': {
    name: 'WWW-Authenticate',
    description: 'The scheme by which to authenticate.',
    schema: { type: 'string' },
    example: 'Bearer',
    required: true,
  },
};

/** Headers of answers that say nothing about what is answered. */
export const SILENT_HEADERS: ReadonlySet<string> = new Set([
  'content-type',
  'content-length',
  'content-security-policy',
  'referrer-policy',
  'cache-control',
]);
