import { AppError } from './app-error.js';
import { ID_PREFIXES, parseId } from './ids.js';

/** A consumer by the uid that its tenant gave it, or by its id. */
export type ConsumerReference =
  { readonly uid: string; readonly id?: undefined } | { readonly id: string; readonly uid?: undefined };

/** Characters in the uid of a consumer. */
export const UID_CHARACTERS_MAX = 255;
const ID_START = `${ID_PREFIXES.consumer}_`;

/** Control and format characters, lone surrogates, line and paragraph separators: what nobody sees. */
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u;

/** Names that no path can carry: whoever reads a URL takes them for a way up. */
const PATHS = ['.', '..'];

/** The uid that a client gave, or `invalid_consumer_uid` thrown; one that begins as an id would be taken for one. */
export function readConsumerUid(uid: unknown, field = 'uid'): string {
  if (
    typeof uid === 'string' &&
    uid.length >= 1 &&
    uid.length <= UID_CHARACTERS_MAX &&
    uid.trim() === uid &&
    !UNPRINTABLE.test(uid) &&
    !PATHS.includes(uid) &&
    !uid.startsWith(ID_START)
  ) {
    return uid;
  }
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
