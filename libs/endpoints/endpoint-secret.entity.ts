import { Column, Entity, PrimaryColumn } from 'typeorm';

/** A signing secret of an endpoint, sealed; several may be live while one replaces another. */
@Entity({ name: 'endpoint_secrets' })
export class EndpointSecret {
  @PrimaryColumn('uuid', { name: 'tenant_id' })
  tenantId!: string;

  @PrimaryColumn('uuid', { name: 'endpoint_id' })
  endpointId!: string;

  @PrimaryColumn('uuid')
  id!: string;

  @Column('bytea', { name: 'sealed_secret', select: false })
  sealedSecret!: Buffer;

  @Column('timestamptz', { name: 'created_at' })
  createdAt!: Date;

  @Column('timestamptz', { name: 'expires_at', nullable: true })
  expiresAt!: Date | null;

  @Column('timestamptz', { name: 'revoked_at', nullable: true })
  revokedAt!: Date | null;
}
