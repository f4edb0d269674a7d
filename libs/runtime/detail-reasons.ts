/** Why a place of a request was refused: the words that `details[].reason` may be, and what each says. */
export const DETAIL_REASONS = {
  missing: 'it must be given',
  invalid: 'its kind, form or range is wrong; `detail` says what it must be',
  unknown: 'there is no such field or parameter here',
  duplicate: 'it is given twice',
  too_large: 'it takes more bytes than it may',
  conflict: 'its idempotency key was used for something else',

  too_long: 'a URL: over 2,048 characters',
  bad_characters: 'a URL: spaces, control characters or backslashes',
  bad_scheme: 'a URL: neither `https` nor `http`',
  http_not_allowed: 'a URL: `http` is not allowed here',
  bad_syntax: 'a URL: it cannot be read',
  has_credentials: 'a URL: a user or password in it',
  has_fragment: 'a URL: a `#` part',
  bad_port: 'a URL: a port that browsers block, or none',
  bad_host: 'a URL: no name or address of a host',
  forbidden_host: 'a URL: this host is not allowed',
  forbidden_address: 'a URL: this address is not allowed',

  pending: 'the state that stands in the way',
  in_progress: 'the state that stands in the way',
  succeeded: 'the state that stands in the way',
  failed: 'the state that stands in the way',
  held: 'the state that stands in the way',
  dead: 'the state that stands in the way',
  cancelled: 'the state that stands in the way',
} as const;

/** A stable word for programs. A delivery that stands in the way is named by its id. */
export type DetailReason = keyof typeof DETAIL_REASONS | `dlv_${string}`;
