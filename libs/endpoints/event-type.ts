/** What Waybill's own operator events start with; producers may not publish them. */
export const OPERATOR_PREFIX = 'waybill.';

/** Characters in an event type or a subscription entry. */
export const EVENT_TYPE_CHARACTERS_MAX = 256;

/** Entries in one endpoint's subscription. */
export const SUBSCRIPTION_ENTRIES_MAX = 100;

/** What Waybill tells of endpoints and deliveries, as events for whoever subscribes to them by these names. */
export const OPERATOR_EVENT_TYPES: readonly string[] = [
  'waybill.endpoint.disabled',
  'waybill.endpoint.recovered',
  'waybill.delivery.dead',
];

/** How an event type looks. */
export const EVENT_TYPE = /^[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*$/;

/** How an entry of a subscription looks. */
export const ENTRY = /^(?:\*|[A-Za-z0-9_-]+)(?:\.(?:\*|[A-Za-z0-9_-]+))*$/;

/** Whether a producer may publish an event of this type. */
export function isEventType(text: string): boolean {
  return (
    text.length <= EVENT_TYPE_CHARACTERS_MAX && EVENT_TYPE.test(text) && !text.startsWith(OPERATOR_PREFIX)
  );
}

/** The entries to store, or where and why they cannot be stored. */
export type EventTypesVerdict =
  | { readonly ok: true; readonly entries: readonly string[] }
  | { readonly ok: false; readonly index: number | null; readonly reason: string };

/**
 * The entries to store for what a caller asked for, without repeats, or the first that is wrong. Null, an empty list
 * and `*` all mean every event type but the operator's, which are only ever matched by their literal names.
 */
export function readEventTypes(asked: readonly string[] | null): EventTypesVerdict {
  const entries = asked ?? [];
  if (entries.length > SUBSCRIPTION_ENTRIES_MAX) {
    return { ok: false, index: null, reason: `must be at most ${SUBSCRIPTION_ENTRIES_MAX} entries` };
  }
  for (const [index, entry] of entries.entries()) {
    const reason = faultOf(entry);
    if (reason !== null) return { ok: false, index, reason };
  }
  const all = entries.length === 0 || entries.includes('*');
  return { ok: true, entries: all ? ['*'] : [...new Set(entries)] };
}

function faultOf(entry: string): string | null {
  if (entry.length > EVENT_TYPE_CHARACTERS_MAX || !ENTRY.test(entry)) {
    return `must be dot-separated segments, each [A-Za-z0-9_-] or *, of at most ${EVENT_TYPE_CHARACTERS_MAX} characters`;
  }
  if (!entry.startsWith(OPERATOR_PREFIX) || OPERATOR_EVENT_TYPES.includes(entry)) return null;
  return `must be one of ${OPERATOR_EVENT_TYPES.join(', ')} under ${OPERATOR_PREFIX}, not ${entry}`;
}
