import { CURSOR_CHARACTERS_MAX, LIMIT_DEFAULT, LIMIT_MAX } from '../../src/http/page.js';
import { idPattern } from '../type-schema.js';
import { text, time, within, type Words } from './word.js';

/** Ids, times, lists, problems, and what is for machines. */
export const GENERAL_WORDS: Words = {
  id: { description: 'The id.' },
  event_id: { description: 'The event.', pattern: idPattern('event') },
  endpoint_id: { description: 'The endpoint.', pattern: idPattern('endpoint') },
  delivery_id: { description: 'The delivery.', pattern: idPattern('delivery') },
  'CancelEventAnswer.id': { description: 'The event.', pattern: idPattern('event') },
  created_at: time('When it was stored.'),
  updated_at: time('When it was last changed.'),
  created_after: time('Only what was created after this time, exclusive.', '2026-01-31T00:00:00Z'),
  died_after: time('Only what died after this time, exclusive.', '2026-01-31T00:00:00Z'),
  died_before: time('Only what died before this time, exclusive.', '2026-02-01T00:00:00Z'),
  settled_until: time(
    'Nothing more that was stored before this time will come into the list; null when that cannot be told.',
  ),
  created_before: time('Only what was created before this time, exclusive.', '2026-02-01T00:00:00Z'),
  data: { description: 'One page of the list, or one result for each event of a batch, in order.' },
  next_cursor: text('The `cursor` of the next page; null when this is the last.', null),
  limit: {
    ...within('How many to answer at most.', { min: 1, max: LIMIT_MAX, whole: true }, 10),
    default: LIMIT_DEFAULT,
  },
  cursor: {
    description: 'Where to go on: `next_cursor` of the page before.',
    minLength: 1,
    maxLength: CURSOR_CHARACTERS_MAX,
    pattern: '^[A-Za-z0-9_-]+$',
  },
  type: {
    description: 'A reference that stands for the code.',
    format: 'uri-reference',
    examples: ['/errors/unknown_field'],
  },
  title: text('The code in a sentence.', 'A field is not known here.'),
  'Problem.code': {
    description: 'Decide by it: codes are added, never renamed.',
    examples: ['unknown_field'],
  },
  'Problem.status': {
    description: 'The HTTP status.',
    type: 'integer',
    minimum: 400,
    maximum: 599,
    examples: [422],
  },
  'Problem.detail': text('What was wrong with this request, for people.', 'A field is not known here.'),
  request_id: text('The `x-request-id` of the answer.', 'req_0f3c9a8b7d6e5f4a3b2c1d0e9f8a7b6c'),
  details: { description: 'The places that were refused, twenty at most.' },
  field: text('The place, as a path.', 'events[3].payload'),
  info: { description: 'What is up.' },
  'HealthReport.error': { description: 'What is down.', examples: [{}] },
  'HealthReport.details': { description: 'Both.', examples: undefined },
  'CheckLivenessAnswer.status': { description: 'Always `ok`.', enum: ['ok'], examples: ['ok'] },
  'HealthReport.status': { description: 'Ready, or not.', examples: ['ok'] },
  'HealthIndicator.status': { description: 'Whether it is there.', examples: ['up'] },
  message: text('Why it is down.', 'no answer within 1000 ms'),
  days_ahead: {
    description: 'Days for which partitions stand ready.',
    type: 'integer',
    minimum: 0,
    examples: [15],
  },
  warning: text('What will be wrong soon.', 'few days ahead'),
};
