import { Column, Entity, PrimaryColumn } from 'typeorm';
import type { DeliveryPolicy } from './read-delivery-policy.js';
import type { Filter } from './read-filter.js';
import type { RetryPolicy } from './read-retry.js';

/** How an endpoint takes deliveries: `paused` keeps a backlog, `disabled` gets no new deliveries at all. */
export const ENDPOINT_STATUSES = ['enabled', 'paused', 'disabled'] as const;
export type EndpointStatus = (typeof ENDPOINT_STATUSES)[number];

/** Why Waybill itself disabled an endpoint: it answered 410, or nothing but failed for days. */
export type DisabledReason = 'gone' | 'failing';

/** The driver reads a bigint as text. */
const BIGINT = {
  from: (value: string | null) => (value === null ? null : Number(value)),
  to: (value: number | null) => value,
};

/** A receiver's URL and how it wants to be delivered to. A deleted one stays as a tombstone, for what is still queued and for history. */
@Entity({ name: 'endpoints' })
export class Endpoint implements DeliveryPolicy {
  @PrimaryColumn('uuid', { name: 'tenant_id' })
  tenantId!: string;

  @PrimaryColumn('uuid')
  id!: string;

  /** Whose endpoint it is, for good; null for the tenant's own. */
  @Column('uuid', { name: 'consumer_id', nullable: true })
  consumerId!: string | null;

  @Column('text')
  url!: string;

  @Column('text')
  description!: string;

  @Column('text')
  status!: EndpointStatus;

  /** Null unless Waybill itself disabled it. */
  @Column('text', { name: 'disabled_reason', nullable: true })
  disabledReason!: DisabledReason | null;

  /** What a payload must be like to be delivered here; null takes all. */
  @Column('jsonb', { nullable: true })
  filter!: Filter | null;

  /** The same as PostgreSQL decides it. */
  @Column('text', { name: 'filter_path', nullable: true, select: false })
  filterPath!: string | null;

  @Column('jsonb', { nullable: true })
  retry!: RetryPolicy | null;

  @Column('bigint', { name: 'max_age_ms', nullable: true, transformer: BIGINT })
  maxAgeMs!: number | null;

  @Column('integer', { name: 'connect_timeout_ms', nullable: true })
  connectTimeoutMs!: number | null;

  @Column('integer', { name: 'attempt_timeout_ms', nullable: true })
  attemptTimeoutMs!: number | null;

  @Column('double precision', { name: 'rate_per_second', nullable: true })
  ratePerSecond!: number | null;

  @Column('integer', { nullable: true })
  concurrency!: number | null;

  @Column('integer', { name: 'circuit_failures', nullable: true })
  circuitFailures!: number | null;

  @Column('double precision', { name: 'circuit_failure_ratio', nullable: true })
  circuitFailureRatio!: number | null;

  @Column('integer', { name: 'circuit_open_ms', nullable: true })
  circuitOpenMs!: number | null;

  /** Counts changes of the destination; how it is delivered to is not part of it. */
  @Column('integer')
  revision!: number;

  @Column('integer', { name: 'secrets_version' })
  secretsVersion!: number;

  /** Counts every change, of policy and secrets too: the ETag, and what dispatchers know their copy by. */
  @Column('integer')
  version!: number;

  @Column('timestamptz', { name: 'created_at' })
  createdAt!: Date;

  @Column('timestamptz', { name: 'updated_at' })
  updatedAt!: Date;

  @Column('timestamptz', { name: 'deleted_at', nullable: true })
  deletedAt!: Date | null;
}
