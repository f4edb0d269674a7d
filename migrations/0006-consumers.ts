import type { MigrationInterface, QueryRunner } from 'typeorm';
import { policiesOf } from './0003-tenant-isolation/policies.js';

/**
 * Consumers: a tenant's customers, with endpoints and events of their own. Code that knows no consumers would send a
 * tenant's events to the endpoints of its consumers, so none may run on this revision.
 */
export class Consumers0006 implements MigrationInterface {
  name = 'consumers-0000000000006';

  async up(runner: QueryRunner): Promise<void> {
    for (const statements of [CONSUMERS, ENDPOINTS, SUBSCRIPTIONS, EVENTS, ACCESS, REVISION]) {
      await runner.query(statements);
    }
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(DROP);
  }
}

const CONSUMERS = `
create table waybill.consumers (
  tenant_id uuid not null references waybill.tenants (id),
  id uuid not null,
  uid text not null check (char_length(uid) between 1 and 255),
  name text not null default '' check (char_length(name) <= 200),
  metadata jsonb check (jsonb_typeof(metadata) = 'object'),
  version integer not null default 1 check (version > 0),
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  deleted_at timestamptz,
  primary key (tenant_id, id)
);
-- A uid is free again once its consumer was deleted.
create unique index consumers_by_uid on waybill.consumers (tenant_id, uid) where deleted_at is null;
`;

/**
 * Whom an endpoint listens for: its consumer, or the tenant itself. One value that is never null is what an equality
 * can look up in an index.
 */
const ENDPOINTS = `
alter table waybill.endpoints
  add column consumer_id uuid,
  add column addressee_id uuid not null generated always as (coalesce(consumer_id, tenant_id)) stored,
  add constraint endpoints_addressee_key unique (tenant_id, id, addressee_id),
  add foreign key (tenant_id, consumer_id) references waybill.consumers (tenant_id, id);
create index endpoints_by_consumer on waybill.endpoints (tenant_id, consumer_id, id) where consumer_id is not null;
`;

/** Matching goes by the addressee first: an event never reads the subscriptions of a tenant's other consumers. */
const SUBSCRIPTIONS = `
alter table waybill.subscriptions
  add column consumer_id uuid,
  add column addressee_id uuid not null generated always as (coalesce(consumer_id, tenant_id)) stored,
  drop constraint subscriptions_pkey,
  add primary key (tenant_id, addressee_id, event_type, endpoint_id),
  -- An entry listens for whom its endpoint does.
  drop constraint subscriptions_tenant_id_endpoint_id_fkey,
  add foreign key (tenant_id, endpoint_id, addressee_id) references waybill.endpoints (tenant_id, id, addressee_id);
drop index waybill.subscriptions_wildcard;
create index subscriptions_wildcard on waybill.subscriptions (tenant_id, addressee_id, endpoint_id) where is_wildcard;
`;

/** Events for nobody in particular have no entry in it, so that it costs them nothing. */
const EVENTS = `
create index events_by_consumer on waybill.events (tenant_id, consumer_id, id) where consumer_id is not null;
`;

/** Whoever accepts events looks up their consumers; names and metadata are for the tenant's admins. */
const ACCESS = `${policiesOf('consumers', 'tenant_id')}
grant select, insert, update on waybill.consumers to waybill_app;
grant select (tenant_id, id, uid, deleted_at) on waybill.consumers to waybill_intake, waybill_dispatcher;
`;

const REVISION = `
update waybill.schema_revision set revision = 6, serves_code_from = 6;
`;

/** Without its consumer an endpoint would hear what is the tenant's: it goes with it. */
const DROP = `
update waybill.schema_revision set revision = 5, serves_code_from = 4;
delete from waybill.subscriptions where consumer_id is not null;
update waybill.endpoints set deleted_at = now() where consumer_id is not null and deleted_at is null;
drop index waybill.events_by_consumer;
drop index waybill.subscriptions_wildcard;
alter table waybill.subscriptions
  drop constraint subscriptions_tenant_id_endpoint_id_addressee_id_fkey,
  drop constraint subscriptions_pkey,
  drop column addressee_id,
  drop column consumer_id,
  add primary key (tenant_id, event_type, endpoint_id),
  add foreign key (tenant_id, endpoint_id) references waybill.endpoints (tenant_id, id);
create index subscriptions_wildcard on waybill.subscriptions (tenant_id, endpoint_id) where is_wildcard;
alter table waybill.endpoints
  drop column addressee_id,
  drop column consumer_id;
drop table waybill.consumers;
`;
