import { setTimeout as delay } from 'node:timers/promises';
import type { Queryable } from '#runtime';
import type { EndpointRef } from './types.js';

/** The channel on which accept and replay say that an endpoint has due work. */
export const HINT_CHANNEL = 'waybill_due';

/** PostgreSQL refuses a notification of 8,000 bytes and would undo the transaction with it. */
const HINT_BYTES_MAX = 7_900;

/**
 * The least time between two hints. A hint after a pause goes out at once; under load one would follow another without
 * end, a transaction each, to dispatchers that are awake anyway.
 */
const HINT_GAP_MS = 5;

/** Hints as they travel: \`tenant:endpoint\` pairs with commas between, or the empty text for "look yourself". */
export function formatHint(endpoints: readonly EndpointRef[]): string {
  const text = endpoints.map(({ tenantId, endpointId }) => `${tenantId}:${endpointId}`).join(',');
  return text.length <= HINT_BYTES_MAX ? text : '';
}

/** The endpoints a hint names; none for "look yourself" and for anything unreadable. */
export function parseHint(text: string): EndpointRef[] {
  return text.split(',').flatMap((pair) => {
    const match = /^([0-9a-f-]{36}):([0-9a-f-]{36})$/.exec(pair);
    return match ? [{ tenantId: match[1]!, endpointId: match[2]! }] : [];
  });
}

/** Sends hints, coalesced. */
export interface Hints {
  /** Returns at once; the hint follows as soon as the one before it is through. */
  notify(endpoints: readonly EndpointRef[]): void;
  /** Resolves when every hint asked for so far was sent or has failed. */
  settled(): Promise<void>;
}

/**
 * Hints shorten the wait of a sleeping dispatcher and carry nothing that polling would not find, so a failed one is
 * only reported. One NOTIFY is under way at a time: what comes meanwhile shares the next one, and the last is never
 * lost. They are sent after commit and never inside a producer's transaction, where NOTIFY takes a lock at commit.
 */
export function createHints(db: Queryable, onError: (error: unknown) => void): Hints {
  let waiting = new Map<string, EndpointRef>();
  let sending: Promise<void> | null = null;
  let quietUntil = 0;

  async function send(): Promise<void> {
    while (waiting.size > 0) {
      const gapMs = quietUntil - performance.now();
      if (gapMs > 0) await delay(gapMs);
      const hint = formatHint([...waiting.values()]);
      waiting = new Map();
      try {
        await db.query({
          name: 'notify-due',
          text: 'select pg_notify($1, $2)',
          values: [HINT_CHANNEL, hint],
        });
      } catch (error) {
        onError(error);
      }
      quietUntil = performance.now() + HINT_GAP_MS;
    }
    sending = null;
  }

  return {
    notify(endpoints) {
      for (const endpoint of endpoints) waiting.set(endpoint.endpointId, endpoint);
      if (waiting.size > 0) sending ??= send();
    },
    async settled() {
      await sending;
    },
  };
}
