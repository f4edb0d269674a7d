import { readFileSync } from 'node:fs';

import { describe, expect, it } from 'vitest';

import { explainDelivery, type StandingReason } from './explain-delivery.js';
import type { DeliveryStanding } from './read-standing.js';

const NOW = new Date('2026-03-01T12:00:00Z');
const inSeconds = (seconds: number): Date => new Date(NOW.getTime() + seconds * 1000);

/** A delivery that fell due a second ago, to an enabled endpoint, with one idle dispatcher and two weeks to live. */
const DUE: DeliveryStanding = {
  deliveryId: 'd',
  eventId: 'e',
  endpointId: 'p',
  state: 'pending',
  deadReason: null,
  attemptCount: 0,
  expiresAt: inSeconds(14 * 86_400),
  finishedAt: null,
  notBefore: null,
  queued: { dueAt: inSeconds(-1), leaseUntil: null, ahead: 0 },
  tenantSuspended: false,
  endpoint: {
    status: 'enabled',
    disabledReason: null,
    deleted: false,
    ratePerSecond: null,
    concurrency: null,
    circuitFailures: null,
  },
  circuit: {
    open: false,
    consecutiveFailures: 0,
    openUntil: null,
    probeUntil: null,
    heldUntil: null,
    closedAt: null,
  },
  tokens: null,
  dispatchers: { living: 1, withRoom: 1, atTenantCap: 0, atEndpointCap: 0, fullSlots: 0 },
  lastAttempt: null,
  readAt: NOW,
};

const FAILED_ATTEMPT = {
  number: 3,
  outcome: 'failed' as const,
  statusCode: 503,
  errorKind: 'http_status',
  error: 'the receiver answered 503',
  responseBody: null,
  startedAt: inSeconds(-5),
  durationMs: 10,
};

const OPEN = { ...DUE.circuit, open: true, consecutiveFailures: 5, openUntil: inSeconds(30) };
const queued = (fields: Partial<NonNullable<DeliveryStanding['queued']>>) => ({
  queued: { ...DUE.queued!, ...fields },
});
const endpoint = (fields: Partial<DeliveryStanding['endpoint']>) => ({
  endpoint: { ...DUE.endpoint, ...fields },
});
const circuit = (fields: Partial<DeliveryStanding['circuit']>) => ({
  circuit: { ...DUE.circuit, ...fields },
});
const dispatchers = (fields: Partial<DeliveryStanding['dispatchers']>) => ({
  dispatchers: { ...DUE.dispatchers, withRoom: 0, ...fields },
});
const ended = (
  state: 'succeeded' | 'cancelled' | 'dead',
  deadReason: DeliveryStanding['deadReason'] = null,
) => ({
  state,
  deadReason,
  attemptCount: 3,
  finishedAt: inSeconds(-60),
  queued: null,
});

const explain = (facts: Partial<DeliveryStanding>) =>
  explainDelivery({ ...DUE, ...facts }, { pollMs: 1_000, circuitFailures: 5 });

interface Case {
  readonly facts: Partial<DeliveryStanding>;
  readonly reason: StandingReason;
  /** What the sentence must say. */
  readonly says: RegExp;
  readonly blockedBy?: readonly string[];
  /** What the last of its details must say. */
  readonly details?: RegExp;
  /** Seconds from now; null for a time that nobody knows. */
  readonly earliest: number | null;
}

const LATER = { dueAt: inSeconds(600) };
const CASES: Record<string, Case> = {
  'that succeeded': {
    facts: ended('succeeded'),
    reason: 'succeeded',
    says: /^It succeeded at 2026-03-01T11:59:00Z \(60 s ago\), after 3 attempts\. Only a replay/,
    earliest: null,
  },
  'that was cancelled': {
    facts: ended('cancelled'),
    reason: 'cancelled',
    says: /Only a replay would send it again/,
    earliest: null,
  },
  'that was cancelled with its endpoint': {
    facts: { ...ended('cancelled'), ...endpoint({ deleted: true }) },
    reason: 'cancelled',
    says: /endpoint was deleted: nothing moves it/,
    earliest: null,
  },
  'that used up its attempts': {
    facts: { ...ended('dead', 'exhausted'), lastAttempt: FAILED_ATTEMPT },
    reason: 'dead_exhausted',
    says: /used up its attempts\. The last attempt ended in 503\./,
    earliest: null,
  },
  'that expired': {
    facts: { ...ended('dead', 'expired'), expiresAt: inSeconds(-61) },
    reason: 'dead_expired',
    says: /since its time had ended\. Only/,
    earliest: null,
  },
  'whose next attempt would have come too late': {
    facts: { ...ended('dead', 'expired'), expiresAt: inSeconds(30), attemptCount: 1 },
    reason: 'dead_expired',
    says: /after 1 attempt, since its next attempt would have come after its time ends at 2026-03-01T12:00:30Z \(in 30 s\)\. Only/,
    earliest: null,
  },
  'that succeeded just now': {
    facts: { ...ended('succeeded'), finishedAt: inSeconds(-0.4) },
    reason: 'succeeded',
    says: /^It succeeded at 2026-03-01T11:59:59Z \(just now\)/,
    earliest: null,
  },
  'that could not be sent': {
    facts: ended('dead', 'unsendable'),
    reason: 'dead_unsendable',
    says: /could not be built/,
    earliest: null,
  },
  'that was rejected': {
    facts: ended('dead', 'rejected'),
    reason: 'dead_rejected',
    says: /refused/,
    earliest: null,
  },
  'whose receiver is gone': {
    facts: ended('dead', 'gone'),
    reason: 'dead_gone',
    says: /410 Gone/,
    earliest: null,
  },
  'whose dead letter is no longer kept': {
    facts: ended('dead'),
    reason: 'dead',
    says: /no longer kept/,
    earliest: null,
  },
  'that is under way': {
    facts: { state: 'in_progress', attemptCount: 2, ...queued({ leaseUntil: inSeconds(40) }) },
    reason: 'in_progress',
    says: /Attempt 2, due since .*lease runs until 2026-03-01T12:00:40Z \(in 40 s\)/,
    earliest: null,
  },
  'whose dispatcher died': {
    facts: { state: 'in_progress', attemptCount: 2, ...queued({ leaseUntil: inSeconds(-3) }) },
    reason: 'lease_lapsed',
    says: /lapsed at 2026-03-01T11:59:57Z \(3 s ago\).*reaps/,
    earliest: null,
  },
  'whose dispatcher died, and no other lives': {
    facts: { state: 'in_progress', ...queued({ leaseUntil: inSeconds(-3) }), ...dispatchers({ living: 0 }) },
    reason: 'lease_lapsed',
    says: /Besides: no_dispatcher\./,
    blockedBy: ['lease_lapsed', 'no_dispatcher'],
    earliest: null,
  },
  'that is owed but not queued': {
    facts: { queued: null },
    reason: 'not_queued',
    says: /a bug/,
    earliest: null,
  },
  'whose time is over': {
    facts: { expiresAt: inSeconds(-1), ...endpoint({ status: 'paused' }) },
    reason: 'expiring',
    says: /buries it/,
    blockedBy: ['expiring', 'endpoint_paused'],
    earliest: null,
  },
  'of a deleted endpoint': {
    facts: endpoint({ deleted: true, status: 'paused' }),
    reason: 'endpoint_deleted',
    says: /cancels it/,
    earliest: null,
  },
  'of a suspended tenant': {
    facts: { tenantSuspended: true },
    reason: 'tenant_suspended',
    says: /suspended/,
    earliest: null,
  },
  'of a paused endpoint': {
    facts: endpoint({ status: 'paused' }),
    reason: 'endpoint_paused',
    says: /^The endpoint is paused\. It moves when the endpoint's status is set to enabled\. If nothing changes, it dies as expired at 2026-03-15T12:00:00Z \(in 14 days\)\.$/,
    earliest: null,
  },
  'of a disabled endpoint': {
    facts: endpoint({ status: 'disabled' }),
    reason: 'endpoint_disabled',
    says: /^The endpoint is disabled\./,
    earliest: null,
  },
  'of an endpoint disabled by a 410': {
    facts: endpoint({ status: 'disabled', disabledReason: 'gone' }),
    reason: 'endpoint_disabled',
    says: /410 Gone/,
    earliest: null,
  },
  'of an endpoint disabled for failing': {
    facts: endpoint({ status: 'disabled', disabledReason: 'failing' }),
    reason: 'endpoint_disabled',
    says: /nothing but fail/,
    earliest: null,
  },
  'without a dispatcher': {
    facts: { ...queued(LATER), ...dispatchers({ living: 0 }) },
    reason: 'no_dispatcher',
    says: /none has been heard of in the last 15 s/,
    blockedBy: ['no_dispatcher', 'scheduled'],
    earliest: null,
  },
  'behind an open circuit': {
    facts: { state: 'held', circuit: OPEN },
    reason: 'circuit_open',
    says: /after 5 failures in a row, until 2026-03-01T12:00:30Z \(in 30 s\)\. It moves when one delivery, sent as a probe/,
    earliest: 30,
  },
  'behind a circuit that one failure opened': {
    facts: {
      state: 'held',
      circuit: { ...OPEN, consecutiveFailures: 1, openUntil: inSeconds(0.2) },
      ...endpoint({ circuitFailures: 1 }),
    },
    reason: 'circuit_open',
    says: /is open after 1 failure in a row, until 2026-03-01T12:00:00Z \(in 1 s\)/,
    earliest: 0.2,
  },
  'behind a circuit that its ratio opened': {
    facts: { state: 'held', circuit: { ...OPEN, consecutiveFailures: 4 } },
    reason: 'circuit_open',
    says: /is open after too many of its attempts failed, until/,
    earliest: 30,
  },
  'behind an open circuit whose probe is due': {
    facts: { state: 'held', circuit: { ...OPEN, openUntil: inSeconds(-2) } },
    reason: 'circuit_open',
    says: /since .*a probe may be sent/,
    earliest: 0,
  },
  'behind a probe': {
    facts: { state: 'held', circuit: { ...OPEN, openUntil: inSeconds(-2), probeUntil: inSeconds(9) } },
    reason: 'circuit_probing',
    says: /until 2026-03-01T12:00:09Z/,
    earliest: null,
  },
  'behind a probe that was lost': {
    facts: { circuit: { ...OPEN, openUntil: inSeconds(-20), probeUntil: inSeconds(-9) } },
    reason: 'circuit_open',
    says: /a probe may be sent/,
    earliest: 0,
  },
  'held by Retry-After': {
    facts: circuit({ heldUntil: inSeconds(90) }),
    reason: 'retry_after',
    says: /no request before 2026-03-01T12:01:30Z/,
    earliest: 90,
  },
  'whose retry was put off by Retry-After': {
    facts: {
      state: 'held',
      attemptCount: 3,
      lastAttempt: { ...FAILED_ATTEMPT, statusCode: 429 },
      ...circuit({ heldUntil: LATER.dueAt }),
      ...queued(LATER),
    },
    reason: 'retry_after',
    says: /asked with Retry-After for no request before 2026-03-01T12:10:00Z .*Besides: scheduled\./,
    blockedBy: ['retry_after', 'scheduled'],
    details: /^Attempt 3 failed \(429\)\. As it asked with Retry-After, the next attempt is due at/,
    earliest: 600,
  },
  'after a Retry-After that is over': {
    facts: circuit({ heldUntil: inSeconds(-1) }),
    reason: 'due',
    says: /nothing/,
    earliest: 0,
  },
  'that waits for a retry': {
    facts: { state: 'failed', attemptCount: 3, lastAttempt: FAILED_ATTEMPT, ...queued(LATER) },
    reason: 'scheduled',
    says: /^Attempt 3 failed \(503\)\. The next attempt is due at 2026-03-01T12:10:00Z \(in 10 min\)\. It moves when its time comes\.$/,
    earliest: 600,
  },
  'whose retry comes too late': {
    facts: { ...queued(LATER), attemptCount: 1, expiresAt: inSeconds(60) },
    reason: 'scheduled',
    says: /Its time ends before that: it dies as expired at 2026-03-01T12:01:00Z/,
    earliest: 600,
  },
  'that is not to be sent yet': {
    facts: { notBefore: LATER.dueAt, ...queued(LATER) },
    reason: 'not_before',
    says: /not_before/,
    earliest: 600,
  },
  'whose circuit opens before its retry is due': {
    facts: { state: 'held', circuit: OPEN, attemptCount: 1, ...queued(LATER) },
    reason: 'scheduled',
    says: /Besides: circuit_open\./,
    blockedBy: ['scheduled', 'circuit_open'],
    earliest: 600,
  },
  'whose retry is due before its circuit opens': {
    facts: { circuit: OPEN, attemptCount: 1, ...queued({ dueAt: inSeconds(10) }) },
    reason: 'circuit_open',
    says: /Besides: scheduled\./,
    blockedBy: ['circuit_open', 'scheduled'],
    earliest: 30,
  },
  'of a rate that is spent': {
    facts: { ...endpoint({ ratePerSecond: 0.5 }), tokens: { left: 0, at: inSeconds(-1) } },
    reason: 'rate_limited',
    says: /takes 0\.5 requests a second, and 0 deliveries are ahead of it: not before 2026-03-01T12:00:01Z/,
    earliest: 1,
  },
  'of a rate of one': {
    facts: { ...endpoint({ ratePerSecond: 1 }), tokens: { left: 0, at: NOW } },
    reason: 'rate_limited',
    says: /takes 1 request a second, and/,
    earliest: 1,
  },
  'of a rate that leaves room': {
    facts: { ...endpoint({ ratePerSecond: 0.5 }), tokens: { left: 0, at: inSeconds(-2) } },
    reason: 'due',
    says: /nothing that is written down stands/,
    earliest: 0,
  },
  'of a rate, behind others': {
    facts: { ...endpoint({ ratePerSecond: 10 }), ...queued({ ahead: 1_000 }) },
    reason: 'rate_limited',
    says: /1000 or more deliveries are ahead of it: not before 2026-03-01T12:01:39Z/,
    earliest: 99.1,
  },
  'of an endpoint at its cap': {
    facts: { ...endpoint({ concurrency: 4 }), ...dispatchers({ living: 2, atEndpointCap: 2 }) },
    reason: 'endpoint_at_cap',
    says: /has reached its cap of 4 requests in flight \(2 of 2 dispatchers\)/,
    earliest: null,
  },
  'of an endpoint at its cap of one': {
    facts: { ...endpoint({ concurrency: 1 }), ...dispatchers({ atEndpointCap: 1 }) },
    reason: 'endpoint_at_cap',
    says: /has reached its cap of 1 request in flight \(1 of 1 dispatcher\)/,
    earliest: null,
  },
  'of a recovering endpoint, whose cap is low for that': {
    facts: {
      ...endpoint({ concurrency: 4 }),
      ...circuit({ closedAt: inSeconds(-3) }),
      ...dispatchers({ atEndpointCap: 1 }),
    },
    reason: 'endpoint_recovering',
    says: /0 deliveries are ahead of it\. .*Besides: endpoint_at_cap\./,
    blockedBy: ['endpoint_recovering', 'endpoint_at_cap'],
    details: /its cap of requests in flight/,
    earliest: null,
  },
  'whose dispatchers have no room for different reasons': {
    facts: dispatchers({ living: 2, atTenantCap: 1, fullSlots: 1 }),
    reason: 'tenant_at_cap',
    says: /share of the fast lane \(WAYBILL_TENANT_CONCURRENCY\), or a quarter of the slow lane .*Besides: dispatcher_slots_full\./,
    blockedBy: ['tenant_at_cap', 'dispatcher_slots_full'],
    earliest: null,
  },
  'with full dispatchers': {
    facts: dispatchers({ fullSlots: 1 }),
    reason: 'dispatcher_slots_full',
    says: /slots are taken \(1 of 1/,
    earliest: null,
  },
  'which one of two dispatchers could take': {
    facts: dispatchers({ living: 2, withRoom: 1, fullSlots: 1 }),
    reason: 'due',
    says: /nothing that is written down stands/,
    earliest: 0,
  },
  'of an endpoint that has just recovered': {
    facts: { ...circuit({ closedAt: inSeconds(-3) }), ...queued({ ahead: 70 }) },
    reason: 'endpoint_recovering',
    says: /pace that doubles each second; 70 deliveries are ahead/,
    earliest: 7,
  },
  'that is due': {
    facts: queued({ ahead: 1 }),
    reason: 'due',
    says: /^It has been due since 2026-03-01T11:59:59Z \(1 s ago\), and nothing that is written down stands in its way: .* within 1 s if it has room\. 1 delivery is ahead of it\.$/,
    earliest: 0,
  },
};

describe.each(Object.entries(CASES))(
  'a delivery %s',
  (_what, { facts, reason, says, blockedBy, details, earliest }) => {
    it(`is explained by ${reason}, in words and with all that blocks it`, () => {
      const { summary, earliestAttemptAt, ...explanation } = explain(facts);
      expect(explanation.reason).toBe(reason);
      expect(summary).toMatch(says);
      const codes = explanation.blockedBy.map(({ code }) => code);
      const nothing = reason === 'due' || facts.finishedAt !== undefined;
      expect(codes).toEqual(blockedBy ?? (nothing ? [] : [reason]));
      expect(earliestAttemptAt).toEqual(earliest === null ? null : inSeconds(earliest));
      expect(explanation.blockedBy.at(-1)?.detail ?? '').toMatch(details ?? '');
      for (const { detail, movesWhen } of explanation.blockedBy) {
        expect([detail, movesWhen]).toEqual([
          expect.stringMatching(/^[A-Z].*\.$/),
          expect.stringMatching(/^[A-Z].*\.$/),
        ]);
      }
    });
  },
);

it('every reason has its case here and its line in the reference', () => {
  const reference = readFileSync(new URL('../../docs/reference/api.md', import.meta.url), 'utf8');
  const table = reference.slice(
    reference.indexOf('| reason '),
    reference.indexOf('### `POST /v1/deliveries/{id}/cancel`'),
  );
  const listed = table
    .split('\n')
    .flatMap((line) => [...(line.split('|')[1] ?? '').matchAll(/`(\w+)`/g)].map(([, code]) => code!));
  const tried = new Set(Object.values(CASES).map(({ reason }) => reason));
  expect(listed.toSorted()).toEqual([...tried].toSorted());
});
