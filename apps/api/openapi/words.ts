import { CONSUMER_WORDS } from './words/consumer-words.js';
import { DELIVERY_WORDS } from './words/delivery-words.js';
import { ENDPOINT_WORDS } from './words/endpoint-words.js';
import { EVENT_WORDS } from './words/event-words.js';
import { GENERAL_WORDS } from './words/general-words.js';
import { KEY_WORDS } from './words/key-words.js';
import { SECRET_WORDS } from './words/secret-words.js';
import { TENANT_WORDS } from './words/tenant-words.js';
import type { Words } from './words/word.js';

/**
 * What every field of the API means, by its name: one word per thing. The shape of a field is read from its TypeScript
 * type; a word has only what a type cannot say: a sentence, bounds, an example.
 */
export const WORDS: Words = {
  ...GENERAL_WORDS,
  ...EVENT_WORDS,
  ...DELIVERY_WORDS,
  ...ENDPOINT_WORDS,
  ...CONSUMER_WORDS,
  ...SECRET_WORDS,
  ...KEY_WORDS,
  ...TENANT_WORDS,
};
