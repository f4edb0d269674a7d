import { setTimeout as sleep } from 'node:timers/promises';

import type { Pool } from 'pg';

const POLL_MS = 20;

/** How long to wait for, and for what: `what` completes the sentence "gave up waiting for …". */
export interface WaitOptions {
  readonly timeoutMs?: number;
  readonly what: string;
}

type Falsy = false | 0 | '' | null | undefined;

/**
 * Resolves with the first truthy value of `condition`, asked every 20 ms; rejects after `timeoutMs` (20 s), saying what
 * was awaited and what came last. What the condition throws ends the wait at once.
 */
export async function waitFor<Value>(
  condition: () => Promise<Value | Falsy> | Value | Falsy,
  { timeoutMs = 20_000, what }: WaitOptions,
): Promise<Value> {
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    const value = await condition();
    if (value) return value;
    if (performance.now() >= deadline) {
      throw new Error(
        `gave up waiting for ${what} after ${timeoutMs} ms; the last answer was ${String(value)}`,
      );
    }
    await sleep(POLL_MS);
  }
}

/** Waits until nothing is owed any more: `waybill.delivery_queue` is empty. On failure it shows some of what is left. */
export async function drain(pool: Pool, timeoutMs = 20_000): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    const { rows } = await pool.query(
      'select to_jsonb(queue)::text as row from waybill.delivery_queue queue limit 5',
    );
    if (rows.length === 0) return;
    if (performance.now() >= deadline) {
      const shown = rows.map(({ row }: { row: string }) => row).join('\n');
      throw new Error(
        `gave up waiting for an empty delivery_queue after ${timeoutMs} ms; still there:\n${shown}`,
      );
    }
    await sleep(POLL_MS);
  }
}
