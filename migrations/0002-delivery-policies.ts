import type { MigrationInterface, QueryRunner } from 'typeorm';
import { PARTITIONS } from './0001-initial/functions.js';

/**
 * Revision 2: how each endpoint wants to be delivered to, and what the dispatchers learned about it. Code of revision 1
 * can run beside it during a rolling deploy: it only knows neither policies nor circuits.
 */
export class DeliveryPolicies0002 implements MigrationInterface {
  name = 'delivery-policies-0000000000002';

  async up(runner: QueryRunner): Promise<void> {
    for (const statements of [
      POLICIES,
      CIRCUITS,
      RATES,
      REPLICAS,
      ANNOUNCEMENTS,
      BOUNDS,
      PARTITIONS_V2,
      ROOM,
      REVISION,
    ]) {
      await runner.query(statements);
    }
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(DROP);
    await runner.query(PARTITIONS.replace('create function', 'create or replace function'));
  }
}

/** Null always means the platform's default. A `circuit_failures` of 0 means that the endpoint has no circuit. */
const POLICIES = `
alter table waybill.endpoints
  add column retry jsonb check (jsonb_typeof(retry) = 'object'),
  add column max_age_ms bigint check (max_age_ms between 1000 and 7776000000),
  add column connect_timeout_ms integer check (connect_timeout_ms between 50 and 60000),
  add column attempt_timeout_ms integer check (attempt_timeout_ms between 100 and 300000),
  add column rate_per_second double precision check (rate_per_second between 0.001 and 10000),
  add column concurrency integer check (concurrency between 1 and 2048),
  add column circuit_failures integer check (circuit_failures between 0 and 1000),
  add column circuit_failure_ratio double precision check (circuit_failure_ratio between 0.01 and 1),
  add column circuit_open_ms integer check (circuit_open_ms between 100 and 3600000),
  add column disabled_reason text check (disabled_reason in ('gone', 'failing')),
  add constraint endpoints_disabled_for_a_reason check (disabled_reason is null or status = 'disabled');
`;

/**
 * What dispatchers share about an endpoint, written only when it changes. A row comes with the first failure. No
 * foreign key: its lock would make a record wait for whoever edits the endpoint, and endpoints are never removed.
 */
const CIRCUITS = `
create table waybill.circuits (
  tenant_id uuid not null,
  endpoint_id uuid not null,
  state text not null default 'closed' check (state in ('closed', 'open')),
  consecutive_failures integer not null default 0 check (consecutive_failures >= 0),
  failing_since timestamptz,
  last_failed_at timestamptz,
  open_until timestamptz,
  closed_at timestamptz,
  probe_token uuid,
  probe_until timestamptz,
  probe_event_id uuid,
  held_until timestamptz,
  gone_at timestamptz,
  primary key (tenant_id, endpoint_id),
  check ((state = 'open') = (open_until is not null)),
  check ((probe_token is null) = (probe_until is null)),
  check (probe_token is null or state = 'open'),
  check (open_until < '9999-12-31' and held_until < '9999-12-31' and closed_at < '9999-12-31')
);
create index circuits_open on waybill.circuits (open_until, tenant_id, endpoint_id) where state = 'open';
`;

/** The tokens of endpoints with a rate, shared by all dispatchers: one write a claim, not one a delivery. */
const RATES = `
create table waybill.rate_tokens (
  tenant_id uuid not null,
  endpoint_id uuid not null,
  tokens double precision not null check (tokens between 0 and 10000),
  refilled_at timestamptz not null,
  primary key (tenant_id, endpoint_id)
) with (fillfactor = 50);
`;

/** Dispatchers that are alive share the caps between them, and say with each heartbeat which caps they have reached. */
const REPLICAS = `
create table waybill.replicas (
  id uuid primary key,
  started_at timestamptz not null,
  heartbeat_at timestamptz not null,
  tenants_at_cap uuid[] not null default '{}',
  endpoints_at_cap uuid[] not null default '{}',
  slots_full boolean not null default false
);
`;

/**
 * Operator events that are still to be made: a row is written by the very statement that changes what it tells of, and
 * only where somebody subscribes, and is taken away by the transaction that accepts the event.
 */
const ANNOUNCEMENTS = `
create table waybill.announcements (
  tenant_id uuid not null,
  event_type text not null
    check (event_type in ('waybill.endpoint.disabled', 'waybill.endpoint.recovered', 'waybill.delivery.dead')),
  subject_id uuid not null,
  endpoint_id uuid not null,
  event_id uuid,
  reason text,
  created_at timestamptz not null check (created_at > '-infinity' and created_at < '9999-12-31'),
  primary key (tenant_id, event_type, subject_id)
);
`;

const BOUNDS = `
alter table waybill.dead_letters
  drop constraint dead_letters_reason_check,
  add constraint dead_letters_reason_check
    check (reason in ('exhausted', 'expired', 'unsendable', 'rejected', 'gone'));
alter table waybill.delivery_queue
  add constraint delivery_queue_counts_check
    check (attempt_count >= 0 and cycle_attempt_count between 0 and attempt_count),
  -- Times beyond these no client of ours can show.
  add constraint delivery_queue_times_check
    check (due_at > '-infinity' and due_at < '9999-12-31' and expires_at > '-infinity' and expires_at < '9999-12-31');
alter table waybill.deliveries
  add constraint deliveries_expires_check check (expires_at > '-infinity' and expires_at < '9999-12-31');
`;

/**
 * Every delivery's state is written once more at least, right after it was inserted. With a fifth of its pages free that is
 * a HOT update, and none of its two indexes is touched. A partitioned table takes no such setting and \`like\` copies
 * none, so each day's table is told.
 */
export const PARTITIONS_V2 = `
create or replace function waybill.create_day_partitions(first_day date, days integer) returns integer
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  parent text;
  day date;
  child text;
  made integer := 0;
begin
  perform pg_advisory_xact_lock(hashtextextended('waybill.create_day_partitions', 0));
  for step in 0..days - 1 loop
    day := first_day + step;
    foreach parent in array array['events', 'deliveries', 'attempts'] loop
      child := parent || '_' || to_char(day, 'YYYYMMDD');
      continue when to_regclass(format('waybill.%I', child)) is not null;
      execute format('create table waybill.%I (like waybill.%I including all)', child, parent);
      if parent = 'deliveries' then
        execute format('alter table waybill.%I set (fillfactor = 80)', child);
      end if;
      execute format(
        'alter table waybill.%I attach partition waybill.%I for values from (%L) to (%L)',
        parent, child,
        waybill.id_floor(day::timestamp at time zone 'UTC'),
        waybill.id_floor((day + 1)::timestamp at time zone 'UTC'));
      made := made + 1;
    end loop;
  end loop;
  return made;
end
$$;
`;

const ROOM = `
do $$
declare
  child regclass;
begin
  for child in select inhrelid from pg_inherits where inhparent = 'waybill.deliveries'::regclass loop
    execute format('alter table %s set (fillfactor = 80)', child);
  end loop;
end
$$;
`;

const REVISION = `
update waybill.schema_revision set revision = 2;
`;

const DROP = `
update waybill.schema_revision set revision = 1;
alter table waybill.deliveries drop constraint deliveries_expires_check;
alter table waybill.delivery_queue
  drop constraint delivery_queue_counts_check, drop constraint delivery_queue_times_check;
update waybill.dead_letters set reason = 'exhausted' where reason in ('rejected', 'gone');
alter table waybill.dead_letters
  drop constraint dead_letters_reason_check,
  add constraint dead_letters_reason_check check (reason in ('exhausted', 'expired', 'unsendable'));
drop table waybill.announcements, waybill.replicas, waybill.rate_tokens, waybill.circuits;
alter table waybill.endpoints
  drop constraint endpoints_disabled_for_a_reason,
  drop column retry, drop column max_age_ms, drop column connect_timeout_ms, drop column attempt_timeout_ms,
  drop column rate_per_second, drop column concurrency, drop column circuit_failures,
  drop column circuit_failure_ratio, drop column circuit_open_ms, drop column disabled_reason;
`;
