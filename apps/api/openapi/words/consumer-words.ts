import { CONSUMER_UID, UID_CHARACTERS_MAX } from '#runtime';
import { CONSUMER_NAME_CHARACTERS_MAX } from '#tenants';
import { idPattern } from '../type-schema.js';
import { wherever, type Words } from './word.js';

const NAMED = { minLength: 1, maxLength: UID_CHARACTERS_MAX, examples: ['acme'] };
const UID_OR_ID = `${idPattern('consumer')}|${CONSUMER_UID.source}`;

/** Consumers, and whom something is for. */
export const CONSUMER_WORDS: Words = {
  uid: {
    description:
      'What the tenant calls it: printable, without a space at either end; not an id, `.` or `..`.',
    ...NAMED,
    pattern: CONSUMER_UID.source,
  },
  consumer: {
    description: 'Whom it is for: the uid or the id of a consumer.',
    ...NAMED,
    pattern: UID_OR_ID,
  },
  'CreateEndpoint.consumer': {
    description:
      'The uid or the id of the consumer whose events it gets, for good. None: those of the tenant.',
  },
  consumer_id: {
    description: "The consumer that it is for; null when it is the tenant's own.",
    pattern: idPattern('consumer'),
    examples: [null],
  },
  ...wherever(['Consumer', 'CreateConsumer', 'PatchConsumer'], {
    name: {
      description: 'For people; without control characters.',
      minLength: 0,
      maxLength: CONSUMER_NAME_CHARACTERS_MAX,
      examples: ['Acme Ltd'],
    },
  }),
};
