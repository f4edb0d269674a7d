import type pg from 'pg';
import type { EgressPolicy } from '#egress';
import type { Hints } from '#outbox';
import type { Config, Logger } from '#runtime';
import type { Keyring } from '#secrets';
import type { TenantTransaction } from '#tenants';
import type { Lifecycle } from './lifecycle.js';
import type { Metrics } from './metrics/create-metrics.js';
import type { Intake } from './publish/intake.js';

/** Runs the database's part of a request in one transaction that sees the rows of one tenant only. */
export type InTenant = <Result>(
  tenantId: string,
  run: (tx: TenantTransaction) => Promise<Result>,
) => Promise<Result>;

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
    /** What is nobody's, or for the platform's operator: readiness, gauges, hints. */
    readonly platformPool: pg.Pool,
    readonly egressPolicy: EgressPolicy,
    readonly hints: Hints,
    readonly metrics: Metrics,
    readonly lifecycle: Lifecycle,
  ) {}
}
