import { Column, Entity, PrimaryColumn } from 'typeorm';

/** A tenant's customer, with endpoints and events of its own. A deleted one stays as a tombstone, for history. */
@Entity({ name: 'consumers' })
export class Consumer {
  @PrimaryColumn('uuid', { name: 'tenant_id' })
  tenantId!: string;

  @PrimaryColumn('uuid')
  id!: string;

  /** What the tenant calls it; one living consumer of a tenant has it. */
  @Column('text')
  uid!: string;

  @Column('text')
  name!: string;

  @Column('jsonb', { nullable: true })
  metadata!: Record<string, string> | null;

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
