import {
  countAhead,
  countOf,
  findLimits,
  findObstacles,
  findWaits,
  when,
  type Blocker,
  type BlockerCode,
} from './explain-blockers.js';
import type { DeliveryStanding } from './read-standing.js';
import type { DeadReason } from './types.js';

/** Why a delivery is where it is: how it ended, what stands in its way, or `due` when nothing does. */
export type StandingReason = 'succeeded' | 'cancelled' | 'dead' | `dead_${DeadReason}` | 'due' | BlockerCode;

/** Why a delivery is where it is, and what would move it. */
export interface Explanation {
  readonly reason: StandingReason;
  /** The same in words, with times. */
  readonly summary: string;
  /** The earliest time at which an attempt can be made; null when none is owed, or when that is not a matter of time. */
  readonly earliestAttemptAt: Date | null;
  /** All that stands in its way, the main reason first. */
  readonly blockedBy: readonly Blocker[];
}

/** Tells from the facts why a delivery is where it is. Pure: the facts carry their own time. */
export function explainDelivery(
  standing: DeliveryStanding,
  { pollMs, circuitFailures }: { readonly pollMs: number; readonly circuitFailures: number },
): Explanation {
  const ended = explainEnd(standing);
  if (ended !== null) return { ...ended, earliestAttemptAt: null, blockedBy: [] };
  const { queued } = standing;
  if (queued === null) return blocked(standing, [NOT_QUEUED]);
  const obstacles = findObstacles(standing);
  if (queued.leaseUntil !== null) {
    return blocked(standing, [leaseOf(standing, queued.leaseUntil), ...onlyDispatcher(obstacles)]);
  }
  if (standing.expiresAt <= standing.readAt) {
    return blocked(standing, [expiring(standing), ...obstacles]);
  }
  const waits = findWaits(standing, circuitFailures).toSorted((one, other) => untilMs(other) - untilMs(one));
  if (obstacles.length + waits.length > 0) return blocked(standing, [...obstacles, ...waits]);
  const limits = findLimits(standing);
  if (limits.length > 0) return blocked(standing, limits);
  const ahead = queued.ahead === 0 ? '' : ` ${countAhead(queued.ahead)} ahead of it.`;
  return {
    reason: 'due',
    summary:
      `It has been due since ${when(queued.dueAt, standing.readAt)}, and nothing that is written down stands in its way: ` +
      `a dispatcher claims it when it next looks, within ${pollMs / 1000} s if it has room.${ahead}`,
    earliestAttemptAt: standing.readAt,
    blockedBy: [],
  };
}

const NOT_QUEUED: Blocker = {
  code: 'not_queued',
  detail: 'It is owed, but the queue does not hold it: no dispatcher will ever find it.',
  until: null,
  movesWhen: 'The operator repairs it. Please report this as a bug.',
};

/** Whose end depends on more than the time that is named. */
const OPEN_ENDED: ReadonlySet<BlockerCode> = new Set([
  'in_progress',
  'lease_lapsed',
  'expiring',
  'circuit_probing',
]);

/** What may well last until the delivery's time is over. */
const LASTING: ReadonlySet<BlockerCode> = new Set([
  'tenant_suspended',
  'endpoint_disabled',
  'endpoint_paused',
  'no_dispatcher',
]);

function blocked(standing: DeliveryStanding, blockedBy: readonly Blocker[]): Explanation {
  const { expiresAt, readAt } = standing;
  const [main, ...others] = blockedBy as readonly [Blocker, ...Blocker[]];
  const open = blockedBy.some(({ code, until }) => until === null || OPEN_ENDED.has(code));
  const earliest = open ? null : new Date(Math.max(readAt.getTime(), ...blockedBy.map(untilMs)));
  const sentences = [
    main.detail,
    `It moves when ${main.movesWhen.charAt(0).toLowerCase()}${main.movesWhen.slice(1)}`,
    others.length > 0 ? `Besides: ${others.map(({ code }) => code).join(', ')}.` : '',
    LASTING.has(main.code) ? `If nothing changes, it dies as expired at ${when(expiresAt, readAt)}.` : '',
    earliest !== null && earliest > expiresAt
      ? `Its time ends before that: it dies as expired at ${when(expiresAt, readAt)}.`
      : '',
  ];
  return {
    reason: main.code,
    summary: sentences.filter((sentence) => sentence !== '').join(' '),
    earliestAttemptAt: earliest,
    blockedBy,
  };
}

function untilMs({ until }: Blocker): number {
  return until?.getTime() ?? 0;
}

function onlyDispatcher(obstacles: readonly Blocker[]): Blocker[] {
  return obstacles.filter(({ code }) => code === 'no_dispatcher');
}

function leaseOf({ attemptCount, readAt, queued }: DeliveryStanding, leaseUntil: Date): Blocker {
  if (leaseUntil > readAt) {
    return {
      code: 'in_progress',
      detail:
        `Attempt ${attemptCount}, due since ${when(queued!.dueAt, readAt)}, is under way; ` +
        `its lease runs until ${when(leaseUntil, readAt)}.`,
      until: leaseUntil,
      movesWhen:
        'The attempt ends and is recorded; should its dispatcher be gone, when the lease has lapsed.',
    };
  }
  return {
    code: 'lease_lapsed',
    detail: `The lease of attempt ${attemptCount} lapsed at ${when(leaseUntil, readAt)}: its dispatcher died, or lost the database.`,
    until: leaseUntil,
    movesWhen: 'A dispatcher reaps the lease, within its next rounds, and counts the attempt as failed.',
  };
}

function expiring({ expiresAt, readAt }: DeliveryStanding): Blocker {
  return {
    code: 'expiring',
    detail: `Its time ended at ${when(expiresAt, readAt)}.`,
    until: expiresAt,
    movesWhen: 'A dispatcher buries it as a dead letter with the reason expired, within its next rounds.',
  };
}

const DEATHS: Readonly<Record<DeadReason, string>> = {
  exhausted: 'it had used up its attempts',
  expired: 'its time had ended',
  unsendable: 'its request could not be built or signed',
  rejected: 'the receiver refused it for good',
  gone: 'the receiver answered 410 Gone',
};

function causeOf({ expiresAt, finishedAt, readAt }: DeliveryStanding, reason: DeadReason): string {
  // A delivery whose next attempt cannot come in time is not kept waiting for its end.
  if (reason === 'expired' && finishedAt !== null && finishedAt < expiresAt) {
    return `its next attempt would have come after its time ends at ${when(expiresAt, readAt)}`;
  }
  return DEATHS[reason];
}

function explainEnd(standing: DeliveryStanding): { reason: StandingReason; summary: string } | null {
  const { state, deadReason, attemptCount, endpoint, readAt } = standing;
  const at = when(standing.finishedAt ?? readAt, readAt);
  const attempts = countOf(attemptCount, 'attempt');
  const replay = endpoint.deleted
    ? 'Its endpoint was deleted: nothing moves it.'
    : 'Only a replay would send it again.';
  if (state === 'succeeded') {
    return { reason: state, summary: `It succeeded at ${at}, after ${attempts}. ${replay}` };
  }
  if (state === 'cancelled') {
    return { reason: state, summary: `It was cancelled at ${at}, after ${attempts}. ${replay}` };
  }
  if (state !== 'dead') return null;
  const cause =
    deadReason === null ? 'for a reason that is no longer kept' : `since ${causeOf(standing, deadReason)}`;
  return {
    reason: deadReason === null ? 'dead' : `dead_${deadReason}`,
    summary: `It died at ${at}, after ${attempts}, ${cause}.${lastOutcome(standing)} ${replay}`,
  };
}

function lastOutcome({ lastAttempt }: DeliveryStanding): string {
  const outcome = lastAttempt?.statusCode ?? lastAttempt?.errorKind ?? null;
  return outcome === null ? '' : ` The last attempt ended in ${outcome}.`;
}
