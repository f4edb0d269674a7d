import { Column, Entity, PrimaryColumn } from 'typeorm';

/** One entry of what an endpoint wants to hear of: an event type, or a pattern with `*` segments. */
@Entity({ name: 'subscriptions' })
export class Subscription {
  @PrimaryColumn('uuid', { name: 'tenant_id' })
  tenantId!: string;

  @PrimaryColumn('text', { name: 'event_type' })
  eventType!: string;

  @PrimaryColumn('uuid', { name: 'endpoint_id' })
  endpointId!: string;

  /** As its endpoint has it. */
  @Column('uuid', { name: 'consumer_id', nullable: true })
  consumerId!: string | null;
}
