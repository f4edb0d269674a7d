import type pg from 'pg';
import type { DataSource } from 'typeorm';
import type { EgressPolicy } from '#egress';
import type { Hints } from '#outbox';
import type { Config, Logger } from '#runtime';
import type { Keyring } from '#secrets';
import type { Authenticate } from './auth/authenticate.js';
import type { Lifecycle } from './lifecycle.js';
import type { Metrics } from './metrics/create-metrics.js';
import type { Accept } from './publish/group-accept.js';
import type { Turns } from './publish/turns.js';

/** What the controllers work with; made once in main, and closed there. */
export class ApiContext {
  constructor(
    readonly config: Config,
    readonly logger: Logger,
    /** Whose key a request brings, looked up together with those of requests that come at the same time. */
    readonly authenticate: Authenticate,
    /** Tenants and endpoints. */
    readonly source: DataSource,
    /** Seals secrets as they are stored; the api never opens one. */
    readonly keyring: Keyring,
    /** Accept and replay: statements planned once, and a short wait for locks. */
    readonly acceptPool: pg.Pool,
    /** Accept under idempotency keys, which may have to wait for one another. */
    readonly keyedPool: pg.Pool,
    /** One request under an idempotency key at a time, in this process. */
    readonly keyTurns: Turns,
    /** Batches, which may take long, and may have to wait for keys. */
    readonly batchPool: pg.Pool,
    /** Stores an event without an idempotency key, together with others that come at the same time. */
    readonly accept: Accept,
    /** Keys, lists and look-ups: planned for the filters that are given. */
    readonly readPool: pg.Pool,
    readonly egressPolicy: EgressPolicy,
    readonly hints: Hints,
    readonly metrics: Metrics,
    readonly lifecycle: Lifecycle,
  ) {}
}
