import { SECRET_OVERLAP_SECONDS } from '#endpoints';
import { time, wherever, within, type Words } from './word.js';

/** Secrets of endpoints. */
export const SECRET_WORDS: Words = {
  ...wherever(['Secret', 'CreateSecretAnswer'], {
    expires_at: time('When it ends; null for the one that stays.', null),
  }),
  'CreateSecret.overlap_seconds': within(
    'How long the older secrets sign beside it; 0 ends them at once. Null is a day.',
    SECRET_OVERLAP_SECONDS,
    86_400,
  ),
};
