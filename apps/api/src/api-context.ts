import type pg from 'pg';
import type { EgressPolicy } from '#egress';
import type { Hints } from '#outbox';
import type { Config, Logger, Queryable } from '#runtime';
import type { Keyring } from '#secrets';
import type { CreateOnce } from './creation/create-once.js';
import type { InTenant } from './in-tenant.js';
import type { Lifecycle } from './lifecycle.js';
import type { Metrics } from './metrics/create-metrics.js';
import type { Intake } from './publish/intake.js';

/** What the controllers work with; made once in main, and closed there. */
export class ApiContext {
  constructor(
    readonly config: Config,
    readonly logger: Logger,
    /** Keys and events: what is done for many tenants at once. */
    readonly intake: Intake,
    /** Everything else that is a tenant's. */
    readonly inTenant: InTenant,
    /** Seals secrets as they are stored; the api never opens one. */
    readonly keyring: Keyring,
    /** What POST routes create for a tenant: once under an idempotency key. */
    readonly createOnce: CreateOnce,
    /** The same for what belongs to no tenant, under NIL_UUID in the tenant's place. */
    readonly createPlatformOnce: CreateOnce<Queryable>,
    /** Up to when lists are complete for good, as of half a second ago at most: a bound that was true once stays so. */
    readonly settledUntil: () => Promise<Date | null>,
    /** What is nobody's, or for the platform's operator: readiness, gauges, hints. */
    readonly platformPool: pg.Pool,
    readonly egressPolicy: EgressPolicy,
    readonly hints: Hints,
    readonly metrics: Metrics,
    readonly lifecycle: Lifecycle,
  ) {}
}
