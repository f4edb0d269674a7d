import type { AcceptResult, EventInput } from '#outbox';
import { isDatabaseUnavailable, sqlState } from '#runtime';
import { groupCalls, type GroupLimits, type Settled } from '../group-calls.js';

/** Stores one event; resolves once it is committed. */
export type Accept = (input: EventInput) => Promise<AcceptResult>;

type AcceptGroup = (inputs: readonly EventInput[]) => Promise<readonly AcceptResult[]>;

/** Measured on two cores: two flights of up to 128 gave three times the requests of a statement for each. */
export const ACCEPT_LIMITS: GroupLimits = { inputsMax: 128, bytesMax: 4_194_304, flightsMax: 2 };

/**
 * Commits events of requests that come at the same time in one statement. Only for events without an idempotency key,
 * which wait for nobody and may be told apart when one of a group is refused.
 */
export function createGroupAccept(acceptGroup: AcceptGroup, limits: GroupLimits = ACCEPT_LIMITS): Accept {
  return groupCalls(
    (inputs) => acceptHalving(acceptGroup, inputs),
    limits,
    (input: EventInput) => input.payload.length,
  );
}

/** Of a group that the database refused for what it held, only the event that it refuses alone fails. */
async function acceptHalving(
  acceptGroup: AcceptGroup,
  inputs: readonly EventInput[],
): Promise<readonly Settled<AcceptResult>[]> {
  try {
    return (await acceptGroup(inputs)).map((value) => ({ value }));
  } catch (error) {
    if (inputs.length === 1 || !wasUndone(error)) return inputs.map(() => ({ error }));
    const middle = Math.ceil(inputs.length / 2);
    const first = await acceptHalving(acceptGroup, inputs.slice(0, middle));
    return [...first, ...(await acceptHalving(acceptGroup, inputs.slice(middle)))];
  }
}

/**
 * Whether the database said that the statement came to nothing because of what it held. After a lost connection
 * nobody knows, and another run could store the events twice; after a timeout another run would only add to the load.
 */
function wasUndone(error: unknown): boolean {
  const state = sqlState(error) ?? '';
  return /^[0-9A-Z]{5}$/.test(state) && !isDatabaseUnavailable(error) && !/^5[0-9]/.test(state);
}
