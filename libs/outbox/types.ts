/** The states a delivery is stored in; `in_progress` and `held` are derived when one is read. */
export type StoredDeliveryState = 'pending' | 'failed' | 'succeeded' | 'dead' | 'cancelled';

/** The states a delivery is shown in. */
export type DeliveryState = StoredDeliveryState | 'in_progress' | 'held';

/** Why a delivery died. */
export type DeadReason = 'exhausted' | 'expired' | 'unsendable' | 'rejected' | 'gone';

/** One event as a door of accept hands it in. */
export interface EventInput {
  readonly tenantId: string;
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
  readonly eventType: string;
  readonly createdAt: Date;
  readonly deliveries: readonly {
    readonly id: string;
    readonly endpointId: string;
    readonly state: DeliveryState;
  }[];
}

/** What became of one EventInput: stored now, stored before under the same key and content, or refused for another content. */
export type AcceptResult =
  | { readonly kind: 'accepted'; readonly event: AcceptedEvent }
  | { readonly kind: 'repeated'; readonly event: AcceptedEvent }
  | { readonly kind: 'conflict' };

/** A tenant's endpoint: the unit of scheduling. */
export interface EndpointRef {
  readonly tenantId: string;
  readonly endpointId: string;
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
  readonly url: string;
  readonly endpointRevision: number;
  readonly secretsVersion: number;
  /** Milliseconds of the database's clock. */
  readonly dueAtMs: number;
  readonly expiresAtMs: number;
  readonly leaseUntilMs: number;
}

/** A claim's answer: the deliveries, and the database's clock when it was made. */
export interface Claim {
  readonly deliveries: readonly ClaimedDelivery[];
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

/** One attempt with its outcome, on its way to the database under the token of its claim. */
export interface SettledAttempt extends EndpointRef {
  readonly eventId: string;
  readonly deliveryId: string;
  readonly claimToken: string;
  readonly attemptNumber: number;
  readonly endpointRevision: number;
  readonly attempt: AttemptRecord;
  readonly outcome: Outcome;
}
