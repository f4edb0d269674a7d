import { UID_CHARACTERS_MAX } from '#runtime';
import { CONSUMER_NAME_CHARACTERS_MAX } from '#tenants';
import { idPattern } from '../type-schema.js';
import type { Words } from './word.js';

/** A consumer where it is named: by what the tenant calls it, or by its id. */
const NAMED = { minLength: 1, maxLength: UID_CHARACTERS_MAX, examples: ['acme'] };

/** Consumers, and whom something is for. */
export const CONSUMER_WORDS: Words = {
  uid: {
    description:
      'What the tenant calls it: printable, without a space at either end; not an id, `.` or `..`.',
    ...NAMED,
  },
  consumer: { description: 'Whom it is for: the uid or the id of a consumer.', ...NAMED },
  'CreateEndpoint.consumer': {
    description:
      'The uid or the id of the consumer whose events it gets, for good. None: those of the tenant.',
  },
  consumer_id: {
    description: "The consumer that it is for; null when it is the tenant's own.",
    pattern: idPattern('consumer'),
    examples: [null],
  },
  'Consumer.name': {
    description: 'For people.',
    maxLength: CONSUMER_NAME_CHARACTERS_MAX,
    examples: ['Acme Ltd'],
  },
};
