import type { ConsumerReference } from '#runtime';

/** The states a delivery is stored in; `in_progress` and `held` are derived when one is read. */
export type StoredDeliveryState = 'pending' | 'failed' | 'succeeded' | 'dead' | 'cancelled';

/** The states a delivery is shown in. */
export type DeliveryState = StoredDeliveryState | 'in_progress' | 'held';

/** Why a delivery died. */
export type DeadReason = 'exhausted' | 'expired' | 'unsendable' | 'rejected' | 'gone';

/** One event as a door of accept hands it in. */
export interface EventInput {
  readonly tenantId: string;
  /** Whom of the tenant's consumers it is for; the tenant itself when it is null or left out. */
  readonly consumer?: ConsumerReference | null;
  readonly eventType: string;
  /** The producer's bytes: stored, signed and sent exactly so. */
  readonly payload: Buffer;
  readonly contentType: string;
  /** A JSON object as text, or null. */
  readonly metadata: string | null;
  /** No attempt before this time; null for at once. */
  readonly notBefore: Date | null;
  readonly idempotency: { readonly key: string; readonly fingerprint: Buffer } | null;
}

/** A stored event, as accept and its repeats answer it. */
export interface AcceptedEvent {
  readonly id: string;
  /** Null for an event of the tenant itself. */
  readonly consumerId: string | null;
  readonly eventType: string;
  readonly createdAt: Date;
  readonly deliveries: readonly {
    readonly id: string;
    readonly endpointId: string;
    readonly state: DeliveryState;
  }[];
}

/** What became of one EventInput: stored now, stored before under the same key and content, or refused for another content or an unknown consumer. */
export type AcceptResult =
  | { readonly kind: 'accepted'; readonly event: AcceptedEvent }
  | { readonly kind: 'repeated'; readonly event: AcceptedEvent }
  | { readonly kind: 'conflict' }
  | { readonly kind: 'tenant_deleted' }
  | { readonly kind: 'consumer_not_found' };

/** A tenant's endpoint: the unit of scheduling. */
export interface EndpointRef {
  readonly tenantId: string;
  readonly endpointId: string;
}

/** How an endpoint that was asked for stands, and how it wants to be delivered to. */
export interface ClaimedEndpoint extends EndpointRef {
  /**
   * `ready`: its due rows were claimed up to `allowed`. `probe`: its circuit's window has passed, and one delivery was
   * claimed to find out. `open` (circuit), `waiting` (Retry-After) and `limited` (its rate): not before `waitMs`.
   * `held`: paused, disabled, deleted, or its tenant is suspended; nothing moves until somebody changes that.
   */
  readonly standing: 'ready' | 'probe' | 'open' | 'waiting' | 'limited' | 'held';
  /** How many rows the claim was allowed to take: fewer found means that no more are due. */
  readonly allowed: number;
  /** Milliseconds until it is worth asking again; null when more may be claimed at once. */
  readonly waitMs: number | null;
  readonly url: string;
  readonly revision: number;
  readonly secretsVersion: number;
  /** Its cap of requests in flight, and the cap while it recovers from an open circuit; null for the platform's. */
  readonly concurrency: number | null;
  readonly recoveringCap: number | null;
  readonly connectTimeoutMs: number | null;
  readonly attemptTimeoutMs: number | null;
  readonly circuitFailures: number | null;
  readonly circuitFailureRatio: number | null;
  readonly circuitOpenMs: number | null;
  /** The stored retry policy, as JSON gives it; null for the platform's. */
  readonly retry: unknown;
}

/** One delivery under a live lease, with all that its attempt needs. */
export interface ClaimedDelivery extends EndpointRef {
  readonly eventId: string;
  readonly deliveryId: string;
  readonly claimToken: string;
  /** The number of this attempt over the delivery's life, counted when claimed. */
  readonly attemptNumber: number;
  /** The number of this attempt since the last replay. */
  readonly cycleAttemptNumber: number;
  readonly eventType: string;
  readonly contentType: string;
  readonly payload: Buffer;
  readonly endpoint: ClaimedEndpoint;
  /** Milliseconds of the database's clock. */
  readonly dueAtMs: number;
  readonly expiresAtMs: number;
  readonly leaseUntilMs: number;
}

/** A claim's answer: the deliveries, how each endpoint stands, and the database's clock when it was made. */
export interface Claim {
  readonly deliveries: readonly ClaimedDelivery[];
  readonly endpoints: readonly ClaimedEndpoint[];
  readonly databaseNowMs: number;
}

/** What an attempt was, in the words of its row in `attempts`. */
export interface AttemptRecord {
  readonly outcome: 'succeeded' | 'failed' | 'lease_expired';
  readonly statusCode: number | null;
  readonly errorKind: string | null;
  readonly error: string | null;
  readonly responseBody: Buffer | null;
  readonly startedAtMs: number;
  readonly durationMs: number;
}

/** What happens to the delivery after an attempt. */
export type Outcome =
  | { readonly state: 'succeeded' }
  | { readonly state: 'failed'; readonly retryInMs: number }
  | { readonly state: 'dead'; readonly reason: DeadReason };

/** When an endpoint's circuit opens, and for how long. */
export interface CircuitPolicy {
  /** Failures in a row that open it; 0 for an endpoint without a circuit. */
  readonly failures: number;
  /** Share of failed attempts in the last minute that opens it; null to look at failures in a row alone. */
  readonly failureRatio: number | null;
  /** How long it stays open before a probe. */
  readonly openMs: number;
}

/** What one attempt says about its endpoint; an attempt that says nothing (a lapsed lease) has none. */
export interface AttemptLesson {
  readonly succeeded: boolean;
  readonly policy: CircuitPolicy;
  /** The failure ratio was reached with this attempt. */
  readonly tripped: boolean;
  /** Milliseconds for which `Retry-After` holds the endpoint; null for not at all. */
  readonly holdMs: number | null;
  /** The receiver answered 410. */
  readonly gone: boolean;
  /** This attempt decides a half-open circuit. */
  readonly isProbe: boolean;
}

/** One attempt with its outcome, on its way to the database under the token of its claim. */
export interface SettledAttempt extends EndpointRef {
  readonly eventId: string;
  readonly deliveryId: string;
  readonly claimToken: string;
  readonly attemptNumber: number;
  readonly endpointRevision: number;
  readonly attempt: AttemptRecord;
  readonly outcome: Outcome;
  /** What it teaches about the endpoint; null for nothing. */
  readonly lesson: AttemptLesson | null;
}
