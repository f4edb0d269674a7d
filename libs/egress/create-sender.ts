import type { AttemptResult, OutgoingRequest } from './attempt-result.js';
import { Connection } from './connection.js';
import type { DialSettings } from './dial.js';
import { createDnsLookup, type Lookup } from './dns-lookup.js';
import { EgressError } from './egress-error.js';
import { Exchange, type BodyLimits, type ExchangeEnd } from './exchange.js';
import { IdleConnections } from './idle-connections.js';
import type { EgressPolicy } from './parse-egress-policy.js';
import { parseTarget, type Target } from './parse-target.js';
import { requestHead } from './request-head.js';

/** What a sender is made of. Without `lookup`, names are looked up by `createDnsLookup`. */
export interface SenderOptions {
  readonly policy: EgressPolicy;
  readonly lookup?: Lookup;
  /** A response longer than this is not read further; its connection is closed. 65,536 unless given. */
  readonly maxResponseBytes?: number;
  /** How much of a response body a result carries. 500 unless given. */
  readonly keepBytes?: number;
  /** PEM of authorities to trust instead of the built-in ones. */
  readonly certificateAuthorities?: string;
}

/** Sends requests to receivers. */
export interface Sender {
  /** Makes one attempt. Never rejects; follows no redirect; reads no proxy from the environment. */
  send(request: OutgoingRequest, signal?: AbortSignal): Promise<AttemptResult>;
  /** Gives up what is in flight (`aborted`) and closes every connection. */
  close(): void;
}

const MAX_KNOWN_TARGETS = 4_096;

/** Makes the one sender of a process. */
export function createSender(options: SenderOptions): Sender {
  return new GuardedSender(options);
}

class GuardedSender implements Sender {
  readonly #dialing: DialSettings;
  readonly #limits: BodyLimits;
  readonly #targets = new Map<string, Target | EgressError>();
  readonly #idle = new IdleConnections();
  readonly #inFlight = new Set<Exchange>();
  /** Answered; their connections wait for what may have come right behind the answer. */
  #answered: { exchange: Exchange; result: AttemptResult; keepMs: number }[] = [];
  #closed = false;

  constructor({
    policy,
    lookup,
    maxResponseBytes = 65_536,
    keepBytes = 500,
    certificateAuthorities,
  }: SenderOptions) {
    this.#dialing = { policy, lookup: lookup ?? createDnsLookup(policy), certificateAuthorities };
    this.#limits = { maxResponseBytes, keepBytes };
  }

  send(request: OutgoingRequest, signal?: AbortSignal): Promise<AttemptResult> {
    return new Promise((resolve) => this.#start(request, signal, resolve));
  }

  close(): void {
    this.#closed = true;
    for (const exchange of this.#inFlight) exchange.abort();
    this.#settleAnswered();
    this.#idle.close();
  }

  #start(
    request: OutgoingRequest,
    signal: AbortSignal | undefined,
    resolve: (result: AttemptResult) => void,
  ): void {
    if (this.#closed || signal?.aborted)
      return resolve(unsent(new EgressError('aborted', 'the attempt was not started')));
    const target = this.#targetOf(request.url);
    if (target instanceof EgressError) return resolve(unsent(target));
    const head = requestHead(target.requestStart, request.headers, request.body.length);
    if (head instanceof EgressError) return resolve(unsent(head));
    const poolKey = `${request.tenantId} ${target.origin}`;
    const connection =
      this.#idle.take(poolKey) ?? new Connection(poolKey, target, this.#dialing, request.connectTimeoutMs);
    const exchange = new Exchange(
      connection,
      resolve,
      this.#limits,
      this.#onEnd,
      signal,
      request.totalTimeoutMs,
    );
    this.#inFlight.add(exchange);
    connection.send(head, request.body, exchange);
  }

  readonly #onEnd: ExchangeEnd = (exchange, result, keepMs) => {
    this.#inFlight.delete(exchange);
    const { connection } = exchange;
    // An answer that came before its request was out (an early 413) leaves the rest of it on the way.
    if (keepMs > 0 && connection.isFlushed && !this.#closed) {
      if (this.#answered.push({ exchange, result, keepMs }) === 1) afterNextPoll(this.#settleAnswered);
      return;
    }
    connection.destroy();
    exchange.resolve(result);
  };

  // A receiver that hangs up right behind its answer, without saying so in it, is heard of when the sockets are next
  // looked at. Used again before that, its connection failed half of all sends that followed each other.
  readonly #settleAnswered = (): void => {
    for (const { exchange, result, keepMs } of this.#answered.splice(0)) {
      if (this.#closed || exchange.connection.isClosed) exchange.connection.destroy();
      else this.#idle.giveBack(exchange.connection, keepMs);
      exchange.resolve(result);
    }
  };

  // The policy never changes, so a URL's verdict does not either.
  #targetOf(url: string): Target | EgressError {
    const known = this.#targets.get(url);
    if (known) return known;
    if (this.#targets.size >= MAX_KNOWN_TARGETS) this.#targets.clear();
    const target = parseTarget(url, this.#dialing.policy);
    this.#targets.set(url, target);
    return target;
  }
}

/** Immediates run after a look at the sockets; one made by another, after the next. */
function afterNextPoll(work: () => void): void {
  setImmediate(() => setImmediate(work));
}

function unsent({ kind, message }: EgressError): AttemptResult {
  return { kind: 'failure', error: kind, message, durationMs: 0, sent: false };
}
