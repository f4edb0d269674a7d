import { AppError } from '#runtime';
import { checkUrl, type EgressPolicy } from '#egress';
import { generateSecret, parseSecret } from '#signing';
import { OPERATOR_PREFIX, readEventTypes } from './event-type.js';
import { refuseField } from './read-field.js';

/** The canonical URL to store; throws `invalid_destination` when the policy refuses it. */
export function acceptUrl(raw: string, policy: EgressPolicy): string {
  const verdict = checkUrl(raw, policy);
  if (verdict.ok) return verdict.url;
  throw new AppError('invalid_destination', `The destination URL is not acceptable: ${verdict.detail}.`, {
    details: [{ field: 'url', reason: verdict.reason }],
  });
}

/** The secret to store: the caller's when it is well formed, a new one when none is given. */
export function acceptSecret(given: string | undefined): string {
  if (given === undefined) return generateSecret();
  const verdict = parseSecret(given);
  if (verdict.ok) return given;
  throw refuseField('secret', `must be well formed: ${verdict.reason}`);
}

/** The subscription entries to store; throws `validation_failed`, naming the entry, for one that cannot be. */
export function acceptEventTypes(asked: readonly string[] | null): readonly string[] {
  const verdict = readEventTypes(asked);
  if (verdict.ok) return verdict.entries;
  throw refuseField(verdict.index === null ? 'event_types' : `event_types[${verdict.index}]`, verdict.reason);
}

/** Characters in an endpoint's description. */
export const DESCRIPTION_CHARACTERS_MAX = 500;
/** Throws `validation_failed` when a consumer's endpoint asks for operator events, which only the tenant hears. */
export function refuseOperatorEvents(asked: readonly string[] | null): void {
  const index = (asked ?? []).findIndex((entry) => entry.startsWith(OPERATOR_PREFIX));
  if (index === -1) return;
  throw refuseField(
    `event_types[${index}]`,
    `must not be under ${OPERATOR_PREFIX} for a consumer's endpoint`,
  );
}

/** Throws `validation_failed` for a description that is too long or holds control characters. */
export function acceptDescription(text: string): string {
  if (text.length <= DESCRIPTION_CHARACTERS_MAX && !/[\p{Cc}\p{Cs}]/u.test(text)) return text;
  throw refuseField(
    'description',
    `must have at most ${DESCRIPTION_CHARACTERS_MAX} characters and no control characters`,
  );
}
