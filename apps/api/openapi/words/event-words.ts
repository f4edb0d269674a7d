import { EVENT_TYPE, EVENT_TYPE_CHARACTERS_MAX, OPERATOR_PREFIX } from '#endpoints';
import { IDEMPOTENCY_KEY } from '../../src/publish/idempotency-key.js';
import { ENTRIES_MAX, KEY_CHARACTERS_MAX, VALUE_CHARACTERS_MAX } from '../../src/publish/read-metadata.js';
import { count, text, time, type Words } from './word.js';

const PUBLISHED_TYPE = `^(?!${OPERATOR_PREFIX.replace('.', '\\.')})${EVENT_TYPE.source.slice(1)}`;

/** Events, and how they are published. */
export const EVENT_WORDS: Words = {
  event_type: {
    description: 'Dot-separated segments.',
    pattern: EVENT_TYPE.source,
    maxLength: EVENT_TYPE_CHARACTERS_MAX,
    examples: ['order.created'],
  },
  'PublishEvent.event_type': {
    description: `Dot-separated segments. What starts with \`${OPERATOR_PREFIX}\` is reserved.`,
    pattern: PUBLISHED_TYPE,
  },
  'BatchItem.event_type': {
    description: `Dot-separated segments. What starts with \`${OPERATOR_PREFIX}\` is reserved.`,
    pattern: PUBLISHED_TYPE,
  },
  payload: {
    description: 'Any JSON value, byte for byte as it was published and is sent.',
    examples: [{ id: 1042, total: 19.9 }],
  },
  not_before: time('No attempt before this time; in a request at most 30 days ahead.', null),
  metadata: {
    description: 'Printable strings that stay with the event and are not sent.',
    maxProperties: ENTRIES_MAX,
    propertyNames: { minLength: 1, maxLength: KEY_CHARACTERS_MAX },
    additionalProperties: { maxLength: VALUE_CHARACTERS_MAX },
    examples: [{ source: 'checkout' }],
  },
  idempotency_key: {
    description: 'Stands for this event for seven days: the same key and content give the first event again.',
    pattern: IDEMPOTENCY_KEY.source,
    examples: ['order-1042-created'],
  },
  events: { description: 'The events, in order; the operator sets how many there may be.', minItems: 1 },
  mode: {
    description: 'Whether all are stored or none, or every good one. Null is `all_or_nothing`.',
    examples: ['all_or_nothing'],
  },
  unfilterable: {
    description: 'Endpoints with a filter were passed over: the database cannot hold the payload as JSON.',
    examples: [false],
  },
  matching: count('How many endpoints would get it.', 1),
  passed_over: count('How many are subscribed to its type, and would not get it.', 0),
  endpoints: { description: 'Those that would get it first.' },
  verdict: {
    description: '`filtered`: its filter does not hold. `unfilterable`: its filter cannot be asked.',
    examples: ['matches'],
  },
  target_count: count('How many deliveries it was owed when it was accepted, and those added since.', 1),
  payload_bytes: count('The size of the payload.', 26),
  content_type: text('The media type of the payload.', 'application/json'),
  deliveries: { description: 'What is owed, or was, for the event: one for each endpoint.' },
  'BatchEvent.status': { description: 'What became of the event.', examples: ['accepted'] },
  'BatchResults.data.status': { description: 'What became of the event.', examples: undefined },
  index: count('The place in the batch, from 0.', 0),
  event: { description: 'The event as publishing it alone would answer.' },
  problem: { description: 'The problem with which the event would have been refused alone.' },
  'CancelEventAnswer.deliveries.state': { description: 'Where it stands now.', examples: ['cancelled'] },
  result: {
    examples: ['cancelled'],
    description:
      '`cancelled` now, `already_cancelled`, `in_progress` (ends as it ends) or `finished` (as `state` says).',
  },
};
