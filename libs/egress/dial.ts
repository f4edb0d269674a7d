import net from 'node:net';
import tls from 'node:tls';
import { classifyAddress } from './classify-address.js';
import type { Lookup, LookupAddress } from './dns-lookup.js';
import { EgressError, toEgressError, toLookupError } from './egress-error.js';
import { ownAddresses } from './own-addresses.js';
import type { EgressPolicy } from './parse-egress-policy.js';
import type { Target } from './parse-target.js';

/** What every connection of a sender shares. */
export interface DialSettings {
  readonly policy: EgressPolicy;
  readonly lookup: Lookup;
  /** PEM of authorities to trust instead of the built-in ones. */
  readonly certificateAuthorities?: string | undefined;
}

type Settle = (error: EgressError | null, socket: net.Socket | null) => void;

const MAX_ADDRESSES = 8;
// A name with more answers than this is an attack on our work, not a receiver.
const MAX_ANSWERS = 32;
const NEXT_ADDRESS_AFTER_MS = 1_000;

/**
 * One connection being made: lookup → judge all answers → connect → judge the peer → TLS. The only place of the product
 * that opens sockets to receivers. A forbidden address gets no packet; a peer that is not what was judged gets no byte.
 * Without TLS the socket reads by `onread` from the start; with TLS it is read by its 'data'.
 */
export class Dial {
  #phase: 'lookup' | 'connect' | 'tls' | 'settled' = 'lookup';
  #socket: net.Socket | null = null;
  readonly #timer: NodeJS.Timeout;

  constructor(
    private readonly target: Target,
    private readonly settings: DialSettings,
    timeoutMs: number,
    private readonly onread: net.OnReadOpts,
    private readonly onSettled: Settle,
  ) {
    this.#timer = setTimeout(() => this.#fail(this.#timeoutError()), timeoutMs);
    if (target.isLiteral) this.#connect([{ address: target.host, family: net.isIP(target.host) }]);
    else void this.#lookup();
  }

  /** Gives up; nothing is reported any more. */
  cancel(): void {
    if (this.#phase === 'settled') return;
    this.#phase = 'settled';
    clearTimeout(this.#timer);
    this.#socket?.destroy();
  }

  async #lookup(): Promise<void> {
    try {
      const answers = await this.settings.lookup(this.target.host);
      if (this.#phase === 'lookup') this.#connect(answers);
    } catch (error) {
      this.#fail(toLookupError(error));
    }
  }

  #connect(answers: readonly LookupAddress[]): void {
    if (answers.length === 0)
      return this.#fail(new EgressError('dns_notfound', 'the host name has no address'));
    if (answers.length > MAX_ANSWERS) return this.#fail(blocked('the host name has too many addresses'));
    // One forbidden answer spoils all: it is an attack or a broken split horizon.
    if (!answers.every(({ address }) => this.#mayReach(address))) {
      return this.#fail(blocked('the host leads to an address that is not allowed'));
    }
    this.#phase = 'connect';
    const addresses = answers
      .slice(0, MAX_ADDRESSES)
      .map(({ address }) => ({ address, family: net.isIP(address) }));
    const socket = net.connect({
      host: this.target.host,
      port: this.target.port,
      noDelay: true,
      ...(this.target.tls ? {} : { onread: this.onread }),
      autoSelectFamily: true,
      autoSelectFamilyAttemptTimeout: NEXT_ADDRESS_AFTER_MS,
      // Only what was judged: the name is not looked up a second time. Not called for literals.
      lookup: (_host, _options, callback) => callback(null, addresses),
    });
    this.#socket = socket;
    socket.once('error', this.#onError);
    socket.once('connect', () => this.#onConnected(socket));
  }

  #onConnected(socket: net.Socket): void {
    if (this.#phase !== 'connect') return;
    if (!this.#mayReach(socket.remoteAddress ?? '')) {
      return this.#fail(blocked('the connection led to an address that is not allowed'));
    }
    if (!this.target.tls) return this.#succeed(socket);
    this.#phase = 'tls';
    const { host, isLiteral } = this.target;
    const secure = tls.connect({
      socket,
      host,
      ...(isLiteral ? {} : { servername: host }),
      ALPNProtocols: ['http/1.1'],
      ...(this.settings.certificateAuthorities === undefined
        ? {}
        : { ca: this.settings.certificateAuthorities }),
    });
    this.#socket = secure;
    secure.once('error', this.#onError);
    secure.once('secureConnect', () => this.#succeed(secure));
  }

  #mayReach(address: string): boolean {
    const verdict = classifyAddress(address, this.target.port, this.settings.policy);
    // A public address of this very machine is a loop, unless the operator listed it.
    return verdict.ok && (verdict.by === 'listed' || !ownAddresses().has(address));
  }

  readonly #onError = (error: Error): void => {
    const { kind, message } = toEgressError(error);
    if (kind === 'timeout') this.#fail(new EgressError('connect_timeout', message));
    // Certificate faults carry dozens of codes of their own; whatever is not the network's in this phase is TLS.
    else if (kind === 'network_error' && this.#phase === 'tls')
      this.#fail(new EgressError('tls_error', message));
    else this.#fail(new EgressError(kind, message));
  };

  #timeoutError(): EgressError {
    return this.#phase === 'lookup'
      ? new EgressError('dns_timeout', 'the host name was not looked up in time')
      : new EgressError('connect_timeout', `no connection in time, stopped at ${this.#phase}`);
  }

  #fail(error: EgressError): void {
    if (this.#phase === 'settled') return;
    this.cancel();
    this.onSettled(error, null);
  }

  #succeed(socket: net.Socket): void {
    if (this.#phase === 'settled') return;
    this.#phase = 'settled';
    clearTimeout(this.#timer);
    // The connection adds listeners of its own, synchronously, before another event can come.
    socket.removeListener('error', this.#onError);
    this.onSettled(null, socket);
  }
}

function blocked(message: string): EgressError {
  return new EgressError('egress_blocked', message);
}
