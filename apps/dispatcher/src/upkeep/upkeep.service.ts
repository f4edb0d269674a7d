import { Inject, Injectable, type OnApplicationBootstrap } from '@nestjs/common';
import { Interval } from '@nestjs/schedule';
import { announceEvents, disableFailing, hasAnnouncements, keepReplica, purgeIdempotencyKeys } from '#outbox';
import { createDayPartitions, formatId, withTransaction, type Config } from '#runtime';
import { purgeTenants } from '#tenants';
import { Engine } from '../engine.js';
import { CONFIG } from '../tokens.js';
import { reapStep, type ReapPlace } from './reap.js';

const REAP_EVERY_MS = 1_000;
const PURGE_EVERY_MS = 60_000;
const PURGE_ROWS = 10_000;
const HEARTBEAT_EVERY_MS = 2_000;
const DISABLE_EVERY_MS = 1_000;
const DISABLE_ROWS = 100;
const ANNOUNCE_EVERY_MS = 1_000;
const ANNOUNCE_ROWS = 256;
/** Four thousand rows a second of each: a large tenant takes its time, and nobody waits for it. */
const ERASE_EVERY_MS = 500;
const ERASE_TENANTS = 4;
const ERASE_ROWS = 2_000;
const PARTITIONS_EVERY_MS = 3_600_000;

/**
 * What must happen from time to time, in every replica. Each task is safe beside its twin in another replica (reap
 * is fenced by tokens, the purge skips locked rows, partitions are made under a lock) and never overlaps itself; one
 * that throws is logged and runs again at its next tick.
 */
@Injectable()
export class UpkeepService implements OnApplicationBootstrap {
  readonly #running = new Set<string>();
  #reapPlace: ReapPlace = { block: 0 };

  constructor(
    private readonly engine: Engine,
    @Inject(CONFIG) private readonly config: Config,
  ) {}

  /** Before the first claim, so that a new replica shares the caps from its first request on. */
  onApplicationBootstrap(): Promise<void> {
    return this.heartbeat();
  }

  @Interval(HEARTBEAT_EVERY_MS)
  heartbeat(): Promise<void> {
    return this.#once('heartbeat', async () => {
      const { db, replicaId, scheduler } = this.engine;
      scheduler.share(await keepReplica(db, replicaId, scheduler.state));
    });
  }

  @Interval(DISABLE_EVERY_MS)
  disable(): Promise<void> {
    return this.#once('disable', async () => {
      const options = { failingMs: this.config.disableAfterMs, limit: DISABLE_ROWS };
      for (const { tenantId, endpointId, reason } of await disableFailing(this.engine.db, options)) {
        this.engine.logger.warn({
          event: 'endpoint.disabled',
          tenant_id: formatId('tenant', tenantId),
          endpoint_id: formatId('endpoint', endpointId),
          reason,
        });
      }
    });
  }

  @Interval(ANNOUNCE_EVERY_MS)
  announce(): Promise<void> {
    return this.#once('announce', async () => {
      if (!(await hasAnnouncements(this.engine.db))) return;
      const options = { limit: ANNOUNCE_ROWS, maxAgeMs: this.config.maxAgeMs };
      const { owed } = await withTransaction(this.engine.db, (tx) => announceEvents(tx, options));
      this.engine.hints.notify(owed);
    });
  }

  @Interval(REAP_EVERY_MS)
  reap(): Promise<void> {
    return this.#once('reap', async () => {
      const { db, recorder, retry } = this.engine;
      const step = await reapStep(db, this.#reapPlace, retry, this.config.leaseMs, Math.random);
      this.#reapPlace = step.next;
      if (step.expired > 0) this.engine.logger.warn({ event: 'delivery.expired', count: step.expired });
      const lapsed = step.lapsed.filter(({ deliveryId }) => !recorder.holds(deliveryId));
      if (lapsed.length === 0) return;
      // Awaited, or each tick would find the same claims again while the database is slow to record them.
      await recorder.record(lapsed);
      this.engine.logger.warn({ event: 'claim.reaped', count: lapsed.length });
    });
  }

  @Interval(PURGE_EVERY_MS)
  purge(): Promise<void> {
    return this.#once('purge', async () => {
      await purgeIdempotencyKeys(this.engine.db, PURGE_ROWS);
    });
  }

  /** What deleted tenants owned is taken away, their own row last. */
  @Interval(ERASE_EVERY_MS)
  erase(): Promise<void> {
    return this.#once('erase', async () => {
      const limits = { tenants: ERASE_TENANTS, rows: ERASE_ROWS };
      for (const { tenantId, removed } of await purgeTenants(this.engine.db, limits)) {
        if (removed !== null) continue;
        this.engine.logger.info({ event: 'tenant.erased', tenant_id: formatId('tenant', tenantId) });
      }
    });
  }

  @Interval(PARTITIONS_EVERY_MS)
  partitions(): Promise<void> {
    return this.#once('partitions', async () => {
      await createDayPartitions(this.engine.db);
    });
  }

  async #once(task: string, run: () => Promise<void>): Promise<void> {
    if (this.#running.has(task) || this.engine.stopping) return;
    this.#running.add(task);
    try {
      await run();
    } catch (error) {
      // Cut short by our own stop, which has closed the pool: whoever lives does it again.
      if (this.engine.stopping) return;
      this.engine.logger.warn({ event: 'upkeep.failed', task, err: error });
    } finally {
      this.#running.delete(task);
    }
  }
}
