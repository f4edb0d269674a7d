import { REPLICA_SILENT_MS } from './keep-replica.js';
import { AHEAD_MAX, type DeliveryStanding } from './read-standing.js';

/** What can keep a delivery that is owed from being sent now. The codes are an API: added to, never renamed. */
export type BlockerCode =
  | 'in_progress'
  | 'lease_lapsed'
  | 'not_queued'
  | 'expiring'
  | 'endpoint_deleted'
  | 'tenant_suspended'
  | 'endpoint_disabled'
  | 'endpoint_paused'
  | 'no_dispatcher'
  | 'circuit_open'
  | 'circuit_probing'
  | 'retry_after'
  | 'not_before'
  | 'scheduled'
  | 'rate_limited'
  | 'endpoint_at_cap'
  | 'tenant_at_cap'
  | 'dispatcher_slots_full'
  | 'endpoint_recovering';

/** One thing that stands in a delivery's way. */
export interface Blocker {
  readonly code: BlockerCode;
  /** A sentence about what is. */
  readonly detail: string;
  /** When it ends at the latest, or is asked about again; null where that is not a matter of time. */
  readonly until: Date | null;
  /** A sentence about what would end it. */
  readonly movesWhen: string;
}

/** A circuit that has just closed lets its endpoint's deliveries through at a doubling pace for so long. */
const RECOVERY_MS = 10_000;

/** What somebody has to change, in the order in which it matters: no passing of time ends any of it. */
export function findObstacles({ endpoint, tenantSuspended, dispatchers }: DeliveryStanding): Blocker[] {
  const found: Blocker[] = [];
  const add = (code: BlockerCode, detail: string, movesWhen: string): void => {
    found.push({ code, detail, until: null, movesWhen });
  };
  if (endpoint.deleted) {
    add('endpoint_deleted', 'The endpoint was deleted.', 'A dispatcher cancels it, within its next rounds.');
  } else {
    if (tenantSuspended) {
      add('tenant_suspended', 'The tenant is suspended.', 'The operator ends the suspension.');
    }
    const enabled = "The endpoint's status is set to enabled.";
    if (endpoint.status === 'disabled')
      add('endpoint_disabled', DISABLED[endpoint.disabledReason ?? 'asked'], enabled);
    if (endpoint.status === 'paused') add('endpoint_paused', 'The endpoint is paused.', enabled);
  }
  if (dispatchers.living === 0) {
    add(
      'no_dispatcher',
      `No dispatcher is running: none has been heard of in the last ${REPLICA_SILENT_MS / 1000} s.`,
      'A dispatcher starts, or reaches the database again.',
    );
  }
  return found;
}

const DISABLED = {
  asked: 'The endpoint is disabled.',
  gone: 'The endpoint was disabled when it answered 410 Gone.',
  failing: 'The endpoint was disabled after it had done nothing but fail for days.',
} as const;

/** What ends by itself at a known time. */
export function findWaits(standing: DeliveryStanding, circuitFailures: number): Blocker[] {
  const { circuit, endpoint, queued, readAt } = standing;
  const found: Blocker[] = [];
  const { heldUntil, openUntil, probeUntil } = circuit;
  if (endpoint.deleted || queued === null) return found;
  if (circuit.open && probeUntil !== null && probeUntil > readAt) {
    found.push({
      code: 'circuit_probing',
      detail: `The endpoint's circuit is open, and one delivery is under way to it as a probe, until ${when(probeUntil, readAt)} at the latest.`,
      until: probeUntil,
      movesWhen:
        'The probe succeeds and the circuit closes; if it fails, the circuit stays open for another while.',
    });
  } else if (circuit.open && openUntil !== null) {
    const failures = openedBy(standing, circuitFailures);
    found.push({
      code: 'circuit_open',
      detail:
        openUntil > readAt
          ? `The endpoint's circuit is open after ${failures}, until ${when(openUntil, readAt)}.`
          : `The endpoint's circuit is open after ${failures}; since ${when(openUntil, readAt)} a probe may be sent.`,
      until: openUntil,
      movesWhen: 'One delivery, sent as a probe when that time is over, succeeds; then the circuit closes.',
    });
  }
  if (heldUntil !== null && heldUntil > readAt) {
    found.push({
      code: 'retry_after',
      detail: `The endpoint asked with Retry-After for no request before ${when(heldUntil, readAt)}.`,
      until: heldUntil,
      movesWhen: 'That time is over.',
    });
  }
  if (queued.dueAt > readAt) found.push(notYetDue(standing, queued.dueAt));
  return found;
}

/** A circuit below its threshold of failures in a row was opened by its ratio. */
function openedBy({ circuit, endpoint }: DeliveryStanding, circuitFailures: number): string {
  const inRow = circuit.consecutiveFailures;
  if (inRow < (endpoint.circuitFailures ?? circuitFailures)) return 'too many of its attempts failed';
  return `${countOf(inRow, 'failure')} in a row`;
}

function notYetDue(standing: DeliveryStanding, dueAt: Date): Blocker {
  const { attemptCount, circuit, lastAttempt, notBefore, readAt } = standing;
  const movesWhen = 'Its time comes.';
  if (attemptCount === 0 && notBefore !== null && notBefore.getTime() === dueAt.getTime()) {
    const detail = `The event was published with a not_before of ${when(dueAt, readAt)}.`;
    return { code: 'not_before', detail, until: dueAt, movesWhen };
  }
  const failure =
    lastAttempt?.outcome === 'succeeded' || lastAttempt === null
      ? ''
      : `Attempt ${lastAttempt.number} failed (${lastAttempt.statusCode ?? lastAttempt.errorKind ?? 'no answer'}). `;
  // Both are counted from the record of the same attempt.
  const asked =
    circuit.heldUntil?.getTime() === dueAt.getTime() ? 'As it asked with Retry-After, the' : 'The';
  return {
    code: 'scheduled',
    detail: `${failure}${asked} next attempt is due at ${when(dueAt, readAt)}.`,
    until: dueAt,
    movesWhen,
  };
}

/** What keeps a delivery that is due and not held from the very next claim. */
export function findLimits(standing: DeliveryStanding): Blocker[] {
  // A recovering endpoint has a lower cap for the time being: the recovery is why it is reached.
  return [...rateLimit(standing), ...recovery(standing), ...reachedCaps(standing)];
}

function rateLimit({ endpoint, tokens, queued, readAt }: DeliveryStanding): Blocker[] {
  const rate = endpoint.ratePerSecond;
  if (rate === null || queued === null) return [];
  const burst = Math.max(rate, 1);
  const refilled =
    tokens && tokens.left + (Math.max(0, readAt.getTime() - tokens.at.getTime()) / 1000) * rate;
  const left = Math.min(refilled ?? burst, burst);
  const missing = queued.ahead + 1 - left;
  if (missing <= 0) return [];
  const until = new Date(readAt.getTime() + Math.ceil((missing / rate) * 1000));
  return [
    {
      code: 'rate_limited',
      detail: `The endpoint takes ${countOf(rate, 'request')} a second, and ${countAhead(queued.ahead)} ahead of it: not before ${when(until, readAt)}.`,
      until,
      movesWhen: 'Its turn comes at that rate, or the rate is raised.',
    },
  ];
}

/** A cap blocks when no living dispatcher has room; each says which caps it has reached. */
function reachedCaps(standing: DeliveryStanding): Blocker[] {
  const { dispatchers, endpoint } = standing;
  const { living, withRoom, atEndpointCap, atTenantCap, fullSlots } = dispatchers;
  if (living === 0 || withRoom > 0) return [];
  const found: Blocker[] = [];
  const add = (code: BlockerCode, count: number, detail: string): void => {
    if (count === 0) return;
    found.push({
      code,
      detail: `${detail} (${count} of ${countOf(living, 'dispatcher')}).`,
      until: null,
      movesWhen: 'An attempt that is under way ends.',
    });
  };
  const cap =
    endpoint.concurrency === null || recoversUntil(standing) !== null
      ? 'requests'
      : countOf(endpoint.concurrency, 'request');
  add('endpoint_at_cap', atEndpointCap, `The endpoint has reached its cap of ${cap} in flight`);
  add(
    'tenant_at_cap',
    atTenantCap,
    'The tenant has reached what it may hold of requests in flight: its share of the fast lane ' +
      '(WAYBILL_TENANT_CONCURRENCY), or a quarter of the slow lane (WAYBILL_SLOW_CONCURRENCY)',
  );
  add('dispatcher_slots_full', fullSlots, 'All of the dispatcher’s slots are taken');
  return found;
}

function recovery(standing: DeliveryStanding): Blocker[] {
  const { circuit, dispatchers, queued, readAt } = standing;
  const until = recoversUntil(standing);
  const capped = dispatchers.withRoom === 0 && dispatchers.atEndpointCap > 0;
  if (until === null || queued === null || (queued.ahead === 0 && !capped)) return [];
  return [
    {
      code: 'endpoint_recovering',
      detail: `The endpoint's circuit closed at ${when(circuit.closedAt!, readAt)}, and its backlog drains at a pace that doubles each second; ${countAhead(queued.ahead)} ahead of it.`,
      until,
      movesWhen: 'Its turn comes.',
    },
  ];
}

function recoversUntil({ circuit, readAt }: DeliveryStanding): Date | null {
  if (circuit.closedAt === null || circuit.open) return null;
  const until = new Date(circuit.closedAt.getTime() + RECOVERY_MS);
  return until > readAt ? until : null;
}

/** A number with the word for what is counted. */
export function countOf(count: number, word: string): string {
  return `${count} ${word}${count === 1 ? '' : 's'}`;
}

/** How many deliveries are ahead, with its verb. */
export function countAhead(ahead: number): string {
  if (ahead === 1) return '1 delivery is';
  return `${ahead >= AHEAD_MAX ? `${AHEAD_MAX} or more` : ahead} deliveries are`;
}

/** A time as a person on call reads it: the clock's, and how far away that is. */
export function when(at: Date, now: Date): string {
  const awayMs = at.getTime() - now.getTime();
  const seconds = Math.round(Math.abs(awayMs) / 1000);
  const clock = `${at.toISOString().slice(0, 19)}Z`;
  if (awayMs > 0) return `${clock} (in ${distanceOf(Math.max(seconds, 1))})`;
  return seconds === 0 ? `${clock} (just now)` : `${clock} (${distanceOf(seconds)} ago)`;
}

function distanceOf(seconds: number): string {
  if (seconds < 120) return `${seconds} s`;
  if (seconds < 7_200) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172_800) return `${Math.round(seconds / 3_600)} h`;
  return `${Math.round(seconds / 86_400)} days`;
}
