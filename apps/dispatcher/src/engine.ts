import { randomUUID } from 'node:crypto';
import { createSender, type EgressPolicy, type Sender } from '#egress';
import {
  createHints,
  dropReplica,
  HINT_CHANNEL,
  parseHint,
  type CircuitChange,
  type ClaimedDelivery,
  type Hints,
  type RetryPolicy,
  type SettledAttempt,
} from '#outbox';
import {
  createPool,
  formatId,
  listen,
  type Database,
  RECORD_MARGIN_MS,
  VERSION,
  type Config,
  type Listener,
  type Logger,
} from '#runtime';
import { DataKeyCache, readDataKey, type Keyring } from '#secrets';
import { attemptsTotal, circuitChangesTotal, recordedLateTotal } from './health/metrics.js';
import { Recorder } from './record/recorder.js';
import type { DatabaseClock } from './schedule/database-clock.js';
import { Scheduler } from './schedule/scheduler.js';
import { attemptLine } from './record/attempt-line.js';
import { deliver, type DeliverParts } from './send/deliver.js';
import { FailureRatios } from './send/failure-ratios.js';
import { openSecrets } from './send/open-secrets.js';
import { SigningKeys } from './send/signing-keys.js';

/** Claims, two records, secrets, upkeep: five statements may be under way at once. */
const CONNECTIONS = 5;

/**
 * The dispatcher's working parts, put together: schedule → claim → send → record.
 *
 *   starting --start--> running --stop--> draining --nothing in flight, all recorded--> stopped
 *                                            \--grace time over--> sends aborted; their leases run out
 */
export class Engine {
  readonly db: Database;
  readonly logger: Logger;
  readonly recorder: Recorder;
  readonly hints: Hints;
  readonly scheduler: Scheduler;
  /** The platform's policy, for endpoints that have none of their own. */
  readonly retry: RetryPolicy;
  readonly replicaId = randomUUID();
  stopping = false;
  readonly #config: Config;
  readonly #sender: Sender;
  readonly #deliverParts: DeliverParts;
  readonly #abort = new AbortController();
  readonly #inFlight = new Set<Promise<void>>();
  #listener: Listener | null = null;

  constructor(config: Config, policy: EgressPolicy, keyring: Keyring, logger: Logger) {
    this.#config = config;
    this.logger = logger;
    this.retry = {
      waits: { kind: 'schedule', delaysMs: config.retryDelaysMs },
      jitter: config.retryJitter,
      retryOn: 'any',
    };
    this.db = createPool({
      url: config.databaseUrl,
      role: 'waybill_dispatcher',
      max: CONNECTIONS,
      applicationName: 'waybill-dispatcher',
      statementTimeoutMs: 5_000,
      lockTimeoutMs: 500,
      genericPlans: true,
      indexOrder: true,
      onIdleError: (error) => logger.warn({ event: 'database.connection_lost', err: error }),
    });
    this.hints = createHints(this.db, (error) => logger.warn({ event: 'hint.failed', err: error }));
    this.recorder = new Recorder(this.db, logger, {
      recorded: (batch, moved) => this.#recorded(batch, moved),
      circuitsChanged: (changes) => this.#circuitsChanged(changes),
    });
    this.#sender = createSender({ policy });
    const dataKeys = new DataKeyCache((tenantId, version) =>
      readDataKey(this.db, keyring, tenantId, version),
    );
    this.#deliverParts = {
      keys: new SigningKeys((tenantId, endpointId) => openSecrets(this.db, dataKeys, tenantId, endpointId)),
      sender: this.#sender,
      ratios: new FailureRatios(),
      random: Math.random,
      abort: this.#abort.signal,
      settings: {
        connectTimeoutMs: config.connectTimeoutMs,
        attemptTimeoutMs: config.attemptTimeoutMs,
        attemptTimeoutMaxMs: config.leaseMs - RECORD_MARGIN_MS,
        recordMarginMs: RECORD_MARGIN_MS / 2,
        retry: this.retry,
        circuit: { failures: config.circuitFailures, failureRatio: null, openMs: config.circuitOpenMs },
        userAgent: `Waybill/${VERSION}`,
      },
    };
    this.scheduler = new Scheduler({
      db: this.db,
      logger,
      settings: config,
      dispatch: (delivery, clock) => this.#dispatch(delivery, clock),
      giveBack: (claimed, delayMs) => this.recorder.giveBack(claimed, delayMs),
      unrecorded: () => this.recorder.unrecorded,
    });
  }

  get inFlight(): number {
    return this.scheduler.inFlight;
  }

  /** False while stopping, or while the database refuses the scheduler's statements. */
  get healthy(): boolean {
    return !this.stopping && this.scheduler.healthy;
  }

  start(): void {
    this.#listener = listen({
      url: this.#config.directDatabaseUrl,
      channel: HINT_CHANNEL,
      applicationName: 'waybill-dispatcher-listen',
      onMessage: (payload) => this.scheduler.hint(parseHint(payload)),
      onConnected: () => this.scheduler.hint([]),
      onLost: (error) => this.logger.warn({ event: 'listen.lost', err: error }),
    });
    this.scheduler.start();
  }

  /**
   * Claims no more, lets what is in flight end within the grace time, records it, and closes everything. What a
   * database that is away could not be told, lapsing leases tell.
   */
  async stop(): Promise<void> {
    if (this.stopping) return;
    this.stopping = true;
    const abort = setTimeout(() => this.#abort.abort(), this.#config.graceMs);
    await this.scheduler.stop();
    await Promise.all(this.#inFlight);
    clearTimeout(abort);
    await this.recorder.drain(RECORD_MARGIN_MS);
    await this.hints.settled();
    // Silence would count as life for another 15 s.
    await dropReplica(this.db, this.replicaId).catch(() => undefined);
    await this.#listener?.stop();
    this.#sender.close();
    await this.db.end();
  }

  #dispatch(delivery: ClaimedDelivery, clock: DatabaseClock): Promise<void> {
    const sending = this.#deliver(delivery, clock)
      // A bug of ours must cost this delivery an attempt, not the process and all that it has in flight.
      .catch((error: unknown) =>
        this.logger.error({ event: 'delivery.crashed', delivery_id: delivery.deliveryId, err: error }),
      )
      .finally(() => this.#inFlight.delete(sending));
    this.#inFlight.add(sending);
    return sending;
  }

  async #deliver(delivery: ClaimedDelivery, clock: DatabaseClock): Promise<void> {
    const delivered = await deliver(delivery, clock, this.#deliverParts);
    if (delivered.kind === 'settled') {
      // Before the slot is free: the next delivery would go out ahead of the record.
      const { holdMs } = delivered.settled.lesson ?? { holdMs: null };
      if (holdMs !== null) this.scheduler.hold(delivery, holdMs);
      return this.recorder.add(delivered.settled);
    }
    const fields = {
      delivery_id: formatId('delivery', delivery.deliveryId),
      attempt: delivery.attemptNumber,
    };
    if (delivered.kind === 'abandoned') {
      this.logger.warn({ event: 'delivery.abandoned', ...fields });
      return;
    }
    this.logger.warn({ event: 'delivery.unsent', ...fields, reason: delivered.reason });
    if (delivered.holdsEndpoint) this.#holdUnreadable(delivery, delivered.reason, delivered.retryInMs);
    await this.recorder.giveBack([delivery], delivered.retryInMs);
  }

  /** Its deliveries wait uncounted, and are looked at again when the hold is over; the others go on. */
  #holdUnreadable({ tenantId, endpointId }: ClaimedDelivery, reason: string, holdMs: number): void {
    this.logger.error({
      event: 'secret.unreadable',
      tenant_id: formatId('tenant', tenantId),
      endpoint_id: formatId('endpoint', endpointId),
      reason,
    });
    this.scheduler.hold({ tenantId, endpointId }, holdMs);
  }

  /** One wide line per attempt, once it is in the database. */
  #recorded(batch: readonly SettledAttempt[], moved: ReadonlySet<string>): void {
    const outcomes = { succeeded: 0, failed: 0, lease_expired: 0 };
    let late = 0;
    for (const settled of batch) {
      const isMoved = moved.has(settled.deliveryId);
      outcomes[settled.attempt.outcome] += 1;
      if (!isMoved) late += 1;
      this.logger.info(attemptLine(settled, isMoved));
    }
    for (const [outcome, count] of Object.entries(outcomes))
      if (count > 0) attemptsTotal.inc({ outcome }, count);
    if (late > 0) recordedLateTotal.inc(late);
  }

  /** What waits behind a circuit is asked for anew: by this dispatcher, and by the others as soon as they hear of it. */
  #circuitsChanged(changes: readonly CircuitChange[]): void {
    for (const { tenantId, endpointId, verdict } of changes) {
      circuitChangesTotal.inc({ verdict });
      this.logger.warn({
        event: `circuit.${verdict}`,
        tenant_id: formatId('tenant', tenantId),
        endpoint_id: formatId('endpoint', endpointId),
      });
    }
    this.scheduler.circuitsChanged(changes);
    this.hints.notify(changes.filter(({ verdict }) => verdict === 'closes'));
  }
}
