import { Column, Entity, PrimaryColumn } from 'typeorm';

/** A customer of this installation; everything else belongs to one. */
@Entity({ name: 'tenants' })
export class Tenant {
  @PrimaryColumn('uuid')
  id!: string;

  @Column('text')
  name!: string;

  @Column('timestamptz', { name: 'created_at' })
  createdAt!: Date;

  @Column('timestamptz', { name: 'suspended_at', nullable: true })
  suspendedAt!: Date | null;
}
