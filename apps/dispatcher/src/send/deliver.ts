import type { AttemptResult, Sender } from '#egress';
import {
  decideOutcome,
  type AttemptRecord,
  type ClaimedDelivery,
  type RetryPolicy,
  type SettledAttempt,
} from '#outbox';
import type { DatabaseClock } from '../schedule/database-clock.js';
import { signRequest } from './sign-request.js';
import { UnusableSecretError, type SigningKeys } from './signing-keys.js';

export interface DeliverSettings {
  readonly connectTimeoutMs: number;
  readonly attemptTimeoutMs: number;
  /**
   * What must be left of the lease at the first byte, beyond the attempt's deadline, to record its outcome. Less than
   * the lease has at its claim: at exactly that much no delivery would ever be sent.
   */
  readonly recordMarginMs: number;
  readonly retry: RetryPolicy;
  readonly userAgent: string;
}

export interface DeliverParts {
  readonly keys: SigningKeys;
  readonly sender: Sender;
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
  | { readonly kind: 'unsent'; readonly reason: string; readonly retryInMs: number }
  | { readonly kind: 'abandoned' };

/** A fault of our own before the first byte, such as secrets that could not be read, must not turn into a busy loop. */
const OUR_FAULT_RETRY_MS = 1_000;

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
    keys = await parts.keys.of(delivery);
  } catch (error) {
    if (!(error instanceof UnusableSecretError))
      return { kind: 'unsent', reason: String(error), retryInMs: OUR_FAULT_RETRY_MS };
    return settle(delivery, clock, parts, clock(), unsendable(error.message));
  }
  const startedAtMs = clock();
  if (delivery.leaseUntilMs - startedAtMs < settings.attemptTimeoutMs + settings.recordMarginMs) {
    return { kind: 'unsent', reason: 'the lease is nearly over', retryInMs: 0 };
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
      url: delivery.url,
      headers: request.headers,
      body: request.body,
      connectTimeoutMs: settings.connectTimeoutMs,
      totalTimeoutMs: settings.attemptTimeoutMs,
    },
    parts.abort,
  );
  if (result.kind === 'failure' && result.error === 'aborted') {
    return result.sent ? { kind: 'abandoned' } : { kind: 'unsent', reason: 'stopping', retryInMs: 0 };
  }
  return settle(delivery, clock, parts, startedAtMs, result);
}

function settle(
  delivery: ClaimedDelivery,
  clock: DatabaseClock,
  { settings, random }: DeliverParts,
  startedAtMs: number,
  result: AttemptResult,
): Delivered {
  const attempt = describeAttempt(result, startedAtMs);
  const standing = {
    cycleAttemptNumber: delivery.cycleAttemptNumber,
    expiresAtMs: delivery.expiresAtMs,
    nowMs: clock(),
    unsendable: result.kind === 'failure' && result.error === 'unsendable',
  };
  const { tenantId, endpointId, eventId, deliveryId, claimToken, attemptNumber, endpointRevision } = delivery;
  return {
    kind: 'settled',
    settled: {
      tenantId,
      endpointId,
      eventId,
      deliveryId,
      claimToken,
      attemptNumber,
      endpointRevision,
      attempt,
      outcome: decideOutcome(attempt, standing, settings.retry, random()),
    },
  };
}

/** An attempt in the words of its row: any 2xx is a success, everything else a failure with its kind. */
export function describeAttempt(result: AttemptResult, startedAtMs: number): AttemptRecord {
  const { durationMs } = result;
  if (result.kind === 'failure') {
    return {
      outcome: 'failed',
      statusCode: null,
      errorKind: result.error,
      error: result.message,
      responseBody: null,
      startedAtMs,
      durationMs,
    };
  }
  const succeeded = result.status >= 200 && result.status <= 299;
  const location = result.location === null ? '' : ` to ${result.location}`;
  return {
    outcome: succeeded ? 'succeeded' : 'failed',
    statusCode: result.status,
    errorKind: succeeded ? null : 'http_status',
    error: succeeded ? null : `the receiver answered ${result.status}${location}`.slice(0, 500),
    responseBody: result.body.length === 0 ? null : result.body,
    startedAtMs,
    durationMs,
  };
}

function unsendable(message: string): AttemptResult {
  return { kind: 'failure', error: 'unsendable', message: message.slice(0, 500), durationMs: 0, sent: false };
}
