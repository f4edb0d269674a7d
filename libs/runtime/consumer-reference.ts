import { AppError } from './app-error.js';
import { ID_PREFIXES, parseId } from './ids.js';

/** A consumer by the uid that its tenant gave it, or by its id. */
export type ConsumerReference =
  { readonly uid: string; readonly id?: undefined } | { readonly id: string; readonly uid?: undefined };

/** Characters in the uid of a consumer. */
export const UID_CHARACTERS_MAX = 255;
const ID_START = `${ID_PREFIXES.consumer}_`;

/**
 * What a uid may be: nothing that nobody sees (control and format characters, lone surrogates, line and paragraph
 * separators), no space at either end, not what begins as an id does, and not the names that no path can carry.
 */
export const CONSUMER_UID = new RegExp(
  `^(?!\\.{1,2}$)(?!${ID_START})(?!\\s)[^\\p{Cc}\\p{Cf}\\p{Cs}\\p{Zl}\\p{Zp}]{1,${UID_CHARACTERS_MAX}}(?<!\\s)$`,
  'u',
);

/** The uid that a client gave, or `invalid_consumer_uid` thrown; one that begins as an id would be taken for one. */
export function readConsumerUid(uid: unknown, field = 'uid'): string {
  if (typeof uid === 'string' && CONSUMER_UID.test(uid)) return uid;
  const rule =
    `A uid has 1 to ${UID_CHARACTERS_MAX} printable characters, no space at either end, ` +
    `does not begin with ${ID_START} and is neither . nor ..`;
  throw new AppError('invalid_consumer_uid', rule, { details: [{ field, reason: 'invalid' }] });
}

/** Which consumer a client means: by its id when it begins as one, else by its uid. Throws for what can be neither. */
export function readConsumerReference(text: unknown, field?: string): ConsumerReference {
  if (typeof text === 'string' && text.startsWith(ID_START)) return { id: parseId('consumer', text) };
  return { uid: readConsumerUid(text, field) };
}
