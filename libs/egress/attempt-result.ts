/** One signed request to one receiver. The URL is re-checked before it is used, whoever stored it. */
export interface OutgoingRequest {
  readonly tenantId: string;
  readonly url: string;
  readonly headers: readonly (readonly [string, string])[];
  readonly body: Uint8Array;
  /** Bounds lookup, connect and TLS together. */
  readonly connectTimeoutMs: number;
  /** Bounds everything, from the call of `send` to the last byte read. */
  readonly totalTimeoutMs: number;
}

/**
 * Why no status came back. `unsendable` will fail the same way every time; the others may pass later. `out_of_resources`
 * is this machine's fault and not the receiver's: it has no socket or memory left.
 */
export type AttemptErrorKind =
  | 'timeout'
  | 'connect_timeout'
  | 'connection_refused'
  | 'connection_reset'
  | 'dns_notfound'
  | 'dns_servfail'
  | 'dns_timeout'
  | 'tls_error'
  | 'protocol_error'
  | 'headers_overflow'
  | 'egress_blocked'
  | 'unsendable'
  | 'aborted'
  | 'out_of_resources'
  | 'network_error';

/** A status was read, whatever became of the body afterwards. */
export interface AttemptResponse {
  readonly kind: 'response';
  readonly status: number;
  /** The header's text; several such headers are joined by a comma. */
  readonly retryAfter: string | null;
  readonly location: string | null;
  /** The first bytes of the body, cut between characters where it is UTF-8. */
  readonly body: Buffer;
  /** True when the body had more than what is kept, or ended badly. */
  readonly bodyTruncated: boolean;
  readonly durationMs: number;
}

/** No status was read. */
export interface AttemptFailure {
  readonly kind: 'failure';
  readonly error: AttemptErrorKind;
  /** Printable, at most 500 characters, without URL, headers or addresses that the policy forbids. */
  readonly message: string;
  readonly durationMs: number;
  /** True when bytes of the request may have reached the receiver. */
  readonly sent: boolean;
}

/** How one attempt ended. */
export type AttemptResult = AttemptResponse | AttemptFailure;
