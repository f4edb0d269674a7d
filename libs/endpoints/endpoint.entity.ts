import { Column, Entity, PrimaryColumn } from 'typeorm';

/** How an endpoint takes deliveries: `paused` keeps a backlog, `disabled` gets no new deliveries at all. */
export const ENDPOINT_STATUSES = ['enabled', 'paused', 'disabled'] as const;
export type EndpointStatus = (typeof ENDPOINT_STATUSES)[number];

/** A receiver's URL. A deleted one stays as a tombstone, for what is still queued and for history. */
@Entity({ name: 'endpoints' })
export class Endpoint {
  @PrimaryColumn('uuid', { name: 'tenant_id' })
  tenantId!: string;

  @PrimaryColumn('uuid')
  id!: string;

  @Column('text')
  url!: string;

  @Column('text')
  description!: string;

  @Column('text')
  status!: EndpointStatus;

  /** Counts changes of where and how a delivery is sent. */
  @Column('integer')
  revision!: number;

  @Column('integer', { name: 'secrets_version' })
  secretsVersion!: number;

  /** Counts every change: the ETag. */
  @Column('integer')
  version!: number;

  @Column('timestamptz', { name: 'created_at' })
  createdAt!: Date;

  @Column('timestamptz', { name: 'updated_at' })
  updatedAt!: Date;

  @Column('timestamptz', { name: 'deleted_at', nullable: true })
  deletedAt!: Date | null;
}
