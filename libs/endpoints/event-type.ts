/** What Waybill's own operator events start with; producers may not publish them. */
export const OPERATOR_PREFIX = 'waybill.';

/** Characters in an event type or a subscription entry. */
export const EVENT_TYPE_CHARACTERS_MAX = 256;

/** Entries in one endpoint's subscription. */
export const SUBSCRIPTION_ENTRIES_MAX = 100;

const EVENT_TYPE = /^[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*$/;
const ENTRY = /^(?:\*|[A-Za-z0-9_-]+)(?:\.(?:\*|[A-Za-z0-9_-]+))*$/;

/** Whether a producer may publish an event of this type. */
export function isEventType(text: string): boolean {
  return (
    text.length <= EVENT_TYPE_CHARACTERS_MAX && EVENT_TYPE.test(text) && !text.startsWith(OPERATOR_PREFIX)
  );
}

/**
 * The entries to store for what a caller asked for, without repeats, or null when one is malformed. Null, an empty
 * list and `*` all mean every event type but the operator's, which are only ever matched by their literal names.
 */
export function readEventTypes(asked: readonly string[] | null): readonly string[] | null {
  if (asked === null || asked.length === 0 || asked.includes('*')) {
    return asked === null || readable(asked) ? ['*'] : null;
  }
  return readable(asked) ? [...new Set(asked)] : null;
}

function readable(entries: readonly string[]): boolean {
  return entries.length <= SUBSCRIPTION_ENTRIES_MAX && entries.every(isEntry);
}

function isEntry(text: string): boolean {
  if (text.length > EVENT_TYPE_CHARACTERS_MAX || !ENTRY.test(text)) return false;
  return !(text.startsWith(OPERATOR_PREFIX) && text.includes('*'));
}
