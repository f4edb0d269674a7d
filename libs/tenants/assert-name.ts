import { AppError } from '#runtime';

/** How long the name of a tenant or of a key may be. */
export const NAME_CHARACTERS_MAX = 200;

/** Throws `validation_failed` for a name that is empty, too long or holds control characters or half a character. */
export function assertName(name: string): void {
  if (name.length >= 1 && name.length <= NAME_CHARACTERS_MAX && !/[\p{Cc}\p{Cs}]/u.test(name)) return;
  throw new AppError(
    'validation_failed',
    `A name has 1 to ${NAME_CHARACTERS_MAX} characters and no control characters.`,
    { details: [{ field: 'name', reason: 'invalid' }] },
  );
}
