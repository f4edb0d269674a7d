import type { AttemptResult, Sender } from '#egress';
import {
  decideOutcome,
  parseRetryAfter,
  readRetryPolicy,
  type AttemptLesson,
  type AttemptRecord,
  type CircuitPolicy,
  type ClaimedDelivery,
  type ClaimedEndpoint,
  type RetryPolicy,
  type SettledAttempt,
} from '#outbox';
import type { DatabaseClock } from '../schedule/database-clock.js';
import { describeAttempt } from './describe-attempt.js';
import type { FailureRatios } from './failure-ratios.js';
import { signRequest } from './sign-request.js';
import { UnreadableSecretError } from './open-secrets.js';
import { UnusableSecretError, type SigningKeys } from './signing-keys.js';

/** The platform's defaults, where an endpoint has no policy of its own, and what no endpoint can have more of. */
export interface DeliverSettings {
  readonly connectTimeoutMs: number;
  readonly attemptTimeoutMs: number;
  /** An attempt must fit into a lease, whatever the endpoint's policy says. */
  readonly attemptTimeoutMaxMs: number;
  /**
   * What must be left of the lease at the first byte, beyond the attempt's deadline, to record its outcome. Less than
   * the lease has at its claim: at exactly that much no delivery would ever be sent.
   */
  readonly recordMarginMs: number;
  readonly retry: RetryPolicy;
  readonly circuit: CircuitPolicy;
  readonly userAgent: string;
}

export interface DeliverParts {
  readonly keys: SigningKeys;
  readonly sender: Sender;
  readonly ratios: FailureRatios;
  readonly random: () => number;
  readonly settings: DeliverSettings;
  /** Ends the sends that are still open when the grace time is over. */
  readonly abort: AbortSignal;
}

/**
 * How a claim ended. `unsent`: not one byte went out, the claim may be given back uncounted. `abandoned`: cut off
 * by our own stop after bytes may have gone out; nobody knows what the receiver saw, so the lease simply runs out.
 */
export type Delivered =
  | { readonly kind: 'settled'; readonly settled: SettledAttempt }
  | {
      readonly kind: 'unsent';
      readonly reason: string;
      readonly retryInMs: number;
      /** Nothing of this endpoint can be sent: claim no more of it for that long. */
      readonly holdsEndpoint?: boolean;
    }
  | { readonly kind: 'abandoned' };

/** A fault of our own before the first byte, such as secrets that came late or not at all, must not turn into a busy loop. */
const OUR_FAULT_RETRY_MS = 1_000;
/** Whoever mends a key needs longer than that, and each look costs a claim and a read. */
const UNREADABLE_RETRY_MS = 30_000;
/** Only these two statuses give `Retry-After` the meaning that holds an endpoint (RFC 6585, RFC 9110). */
const HOLDING = new Set([429, 503]);

/**
 * Takes one claimed delivery through sign, send and decide. Never rejects for what a receiver does; an error of our
 * own before the first byte gives `unsent`.
 */
export async function deliver(
  delivery: ClaimedDelivery,
  clock: DatabaseClock,
  parts: DeliverParts,
): Promise<Delivered> {
  const { settings } = parts;
  let keys;
  try {
    keys = await parts.keys.of(delivery, clock());
  } catch (error) {
    if (error instanceof UnreadableSecretError)
      return { kind: 'unsent', reason: error.message, retryInMs: UNREADABLE_RETRY_MS, holdsEndpoint: true };
    if (!(error instanceof UnusableSecretError))
      return { kind: 'unsent', reason: String(error), retryInMs: OUR_FAULT_RETRY_MS };
    return settle(delivery, clock, parts, clock(), unsendable(error.message));
  }
  const { connectTimeoutMs, totalTimeoutMs } = timeoutsOf(delivery.endpoint, settings);
  const startedAtMs = clock();
  if (delivery.leaseUntilMs - startedAtMs < totalTimeoutMs + settings.recordMarginMs) {
    return { kind: 'unsent', reason: 'the lease is nearly over', retryInMs: OUR_FAULT_RETRY_MS };
  }
  let request;
  try {
    request = signRequest(delivery, { keys, nowMs: startedAtMs, userAgent: settings.userAgent });
  } catch (error) {
    // Signing depends on nothing but the delivery: it would fail the same way for ever.
    return settle(delivery, clock, parts, startedAtMs, unsendable(`cannot be signed: ${String(error)}`));
  }
  const result = await parts.sender.send(
    {
      tenantId: delivery.tenantId,
      url: delivery.endpoint.url,
      headers: request.headers,
      body: request.body,
      connectTimeoutMs,
      totalTimeoutMs,
    },
    parts.abort,
  );
  if (result.kind === 'failure' && result.error === 'aborted') {
    return result.sent ? { kind: 'abandoned' } : { kind: 'unsent', reason: 'stopping', retryInMs: 0 };
  }
  if (result.kind === 'failure' && result.error === 'out_of_resources' && !result.sent)
    return { kind: 'unsent', reason: result.message, retryInMs: OUR_FAULT_RETRY_MS };
  return settle(delivery, clock, parts, startedAtMs, result);
}

function timeoutsOf(
  endpoint: ClaimedEndpoint,
  settings: DeliverSettings,
): { readonly connectTimeoutMs: number; readonly totalTimeoutMs: number } {
  const totalTimeoutMs = Math.min(
    endpoint.attemptTimeoutMs ?? settings.attemptTimeoutMs,
    settings.attemptTimeoutMaxMs,
  );
  const connectTimeoutMs = Math.min(endpoint.connectTimeoutMs ?? settings.connectTimeoutMs, totalTimeoutMs);
  return { connectTimeoutMs, totalTimeoutMs };
}

function settle(
  delivery: ClaimedDelivery,
  clock: DatabaseClock,
  parts: DeliverParts,
  startedAtMs: number,
  result: AttemptResult,
): Delivered {
  const nowMs = clock();
  const attempt = describeAttempt(result, startedAtMs);
  const retryAfterMs =
    result.kind === 'response' && HOLDING.has(result.status)
      ? parseRetryAfter(result.retryAfter, nowMs)
      : null;
  const standing = {
    cycleAttemptNumber: delivery.cycleAttemptNumber,
    expiresAtMs: delivery.expiresAtMs,
    nowMs,
    unsendable: result.kind === 'failure' && result.error === 'unsendable',
    retryAfterMs,
  };
  const policy = readRetryPolicy(delivery.endpoint.retry, parts.settings.retry);
  const { tenantId, endpointId, eventId, deliveryId, claimToken, attemptNumber, endpoint } = delivery;
  return {
    kind: 'settled',
    settled: {
      tenantId,
      endpointId,
      eventId,
      deliveryId,
      claimToken,
      attemptNumber,
      endpointRevision: endpoint.revision,
      attempt,
      outcome: decideOutcome(attempt, standing, policy, parts.random()),
      lesson: lessonOf(endpoint, attempt, retryAfterMs, standing.unsendable, parts),
    },
  };
}

/** A request that cannot be built says nothing about its receiver; as a probe it must free the circuit all the same. */
function lessonOf(
  endpoint: ClaimedEndpoint,
  attempt: AttemptRecord,
  holdMs: number | null,
  isUnsendable: boolean,
  { settings, ratios }: DeliverParts,
): AttemptLesson | null {
  const isProbe = endpoint.standing === 'probe';
  if (isUnsendable && !isProbe) return null;
  const succeeded = attempt.outcome === 'succeeded';
  const policy = {
    failures: endpoint.circuitFailures ?? settings.circuit.failures,
    failureRatio: endpoint.circuitFailureRatio ?? settings.circuit.failureRatio,
    openMs: endpoint.circuitOpenMs ?? settings.circuit.openMs,
  };
  return {
    succeeded,
    policy,
    tripped: ratios.reached(endpoint.endpointId, succeeded, policy.failureRatio, performance.now()),
    holdMs,
    gone: attempt.statusCode === 410,
    isProbe,
  };
}

function unsendable(message: string): AttemptResult {
  return { kind: 'failure', error: 'unsendable', message: message.slice(0, 500), durationMs: 0, sent: false };
}
