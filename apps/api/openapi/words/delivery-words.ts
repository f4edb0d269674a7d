import { count, text, time, type Words } from './word.js';

/** Deliveries, attempts, explanations and dead letters. */
export const DELIVERY_WORDS: Words = {
  state: {
    examples: ['pending'],
    description:
      'Where the delivery stands; `in_progress` and `held` are what is true at this moment, not stored.',
  },
  'CircuitState.state': {
    examples: ['closed'],
    description:
      '`closed`, `open` (nothing is sent until `open_until`) or `half_open` (one probe is let through).',
  },
  'ReplayDeliveryAnswer.state': { description: 'Due again.', enum: ['pending'] },
  attempt_count: count('Attempts over the life of the delivery.', 1),
  next_attempt_at: time('When the next attempt is due; null when none is.', null),
  last_status_code: {
    ...count('What the receiver answered last; null for no answer.', 503),
    minimum: 100,
    maximum: 599,
  },
  last_error_kind: text('What went wrong last, as `error_kind` of an attempt.', 'http_status'),
  dead_reason: { description: 'Why it died; null unless it is dead.', examples: [null] },
  expires_at: time('What is still owed then is dead.', '2026-02-14T12:00:00.000Z'),
  finished_at: time('When it came to its end; null while it is owed.', null),
  attempts: { description: 'The requests that were made, or claimed, in order.' },
  number: { ...count('Counts over the life of the delivery, from 1.', 1), minimum: 1 },
  outcome: {
    description: '`lease_expired`: the worker recorded nothing, and the request may have been made.',
    examples: ['failed'],
  },
  status_code: {
    ...count('What the receiver answered; null for no answer.', 503),
    minimum: 100,
    maximum: 599,
  },
  error_kind: text('What went wrong, in a word; null for a success. More kinds may come.', 'http_status'),
  error: text('The same in a sentence.', 'the receiver answered 503'),
  response_body: text('The first 500 bytes of the answer, as text.', 'try later'),
  started_at: time('When the attempt was made.'),
  duration_ms: { description: 'How long it took.', minimum: 0, examples: [12.345] },
  reason: {
    description: 'Why it is where it is; the first of `blocked_by` where there are any.',
    examples: ['endpoint_paused'],
  },
  'DeadLetter.reason': { description: 'Why it died.', examples: ['exhausted'] },
  'ErrorDetail.reason': text('Why it was refused.', 'unknown'),
  summary: text('The same in words, for people.', 'The endpoint is paused.'),
  blocked_by: { description: 'All that stands in its way, the main reason first.' },
  code: { description: 'Decide by it: codes are added, never renamed.', examples: ['endpoint_paused'] },
  detail: text('A sentence for people; it may change.', 'The endpoint is paused.'),
  until: time(
    'When that ends at the latest, or is asked about again; null where it is no matter of time.',
    null,
  ),
  moves_when: text('What would end it.', "The endpoint's status is set to enabled."),
  earliest_attempt_at: time(
    'The earliest attempt that all of it allows; null when that is no matter of time.',
    null,
  ),
  deliveries_ahead: {
    ...count('Deliveries of the same endpoint that are due before it, counted up to 1,000.', 0),
    maximum: 1_000,
  },
  last_attempt: { description: 'The last attempt; null before the first.' },
  evaluated_at: time('The moment of which this is true.'),
  died_at: time('When it died.'),
  resolved_at: time('When somebody replayed it; null while nobody has.', null),
  resolved: {
    description: 'Only those that were replayed since, or only those that were not.',
    examples: [false],
  },
};
