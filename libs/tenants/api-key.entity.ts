import { Column, Entity, PrimaryColumn } from 'typeorm';

/** A bearer key of a tenant. Of the key itself only a digest is kept. */
@Entity({ name: 'api_keys' })
export class ApiKey {
  @PrimaryColumn('uuid', { name: 'tenant_id' })
  tenantId!: string;

  @PrimaryColumn('uuid')
  id!: string;

  @Column('text')
  name!: string;

  @Column('bytea', { name: 'secret_digest', select: false })
  secretDigest!: Buffer;

  @Column('text', { array: true })
  scopes!: string[];

  @Column('timestamptz', { name: 'created_at' })
  createdAt!: Date;

  @Column('timestamptz', { name: 'expires_at', nullable: true })
  expiresAt!: Date | null;

  @Column('timestamptz', { name: 'revoked_at', nullable: true })
  revokedAt!: Date | null;
}
