import { NAME_CHARACTERS_MAX, OVERLAP_SECONDS_DEFAULT, OVERLAP_SECONDS_MAX } from '#tenants';
import { SCOPES_MAX } from '../../src/keys/create-key.dto.js';
import { text, time, wherever, within, type Words } from './word.js';

/** Where a key is shown. */
const SHOWN = ['Key', 'CreateKeyAnswer', 'RotateKeyAnswer', 'CreateTenantAnswer.first_key'];

const ENDS = 'When it ends; null when it only ends by being revoked.';

/** API keys. */
export const KEY_WORDS: Words = {
  name: {
    description: 'For people; without control characters.',
    minLength: 1,
    maxLength: NAME_CHARACTERS_MAX,
    examples: ['shop backend'],
  },
  scopes: {
    description: 'What it may do; `admin` is everything.',
    minItems: 1,
    examples: [['events:write', 'endpoints:read']],
  },
  'CreateKey.scopes': {
    description: 'What it may do; nothing that the key which asks may not.',
    maxItems: SCOPES_MAX,
  },
  key: text('The key itself, to send as bearer token.', 'wb_live_…'),
  ...wherever(SHOWN, {
    status: { description: 'Whether it is good now, or how it ended.', examples: ['live'] },
    expires_at: time(ENDS, null),
  }),
  'CreateKey.expires_at': time(`${ENDS} Not in the past.`, null),
  revoked_at: time('When it was revoked; null unless it was.', null),
  last_used_at: time('When it was last used, to the minute; null before that.', null),
  replaces: { description: 'The key that it takes the place of, with the time at which that ends.' },
  overlap_seconds: {
    ...within(
      'How long the old key stays good; 0 ends it at once.',
      { min: 0, max: OVERLAP_SECONDS_MAX, whole: true },
      OVERLAP_SECONDS_DEFAULT,
    ),
    default: OVERLAP_SECONDS_DEFAULT,
  },
};
