import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Revision 1: the catalogue (tenants, keys, endpoints), the record of what happened (events, deliveries,
 * attempts: partitioned by the UTC day in the event's id) and the small hot table of what is still owed
 * (delivery_queue).
 *
 * Rules kept from the first table on: everything in the schema `waybill`; tenant_id leads every key; no foreign
 * key on events, deliveries, queue and attempts (they cost over half of a batched insert's time: one statement
 * writes all rows of an event); no volatile function inside a write.
 */
export class Initial0001 implements MigrationInterface {
  // TypeORM orders migrations by the thirteen digits at the end of their name.
  name = 'initial-0000000000001';

  async up(runner: QueryRunner): Promise<void> {
    for (const statements of [CATALOGUE, IDS, MATCHING, RECORD, QUEUE, PARTITIONS, REVISION]) {
      await runner.query(statements);
    }
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(DROP);
  }
}

const CATALOGUE = `
create table waybill.tenants (
  id uuid primary key,
  name text not null check (char_length(name) between 1 and 200),
  created_at timestamptz not null default now(),
  suspended_at timestamptz
);

create table waybill.api_keys (
  tenant_id uuid not null references waybill.tenants (id),
  id uuid not null,
  name text not null check (char_length(name) between 1 and 200),
  secret_digest bytea not null check (octet_length(secret_digest) = 32),
  scopes text[] not null check (cardinality(scopes) between 1 and 32),
  created_at timestamptz not null default now(),
  expires_at timestamptz,
  revoked_at timestamptz,
  primary key (tenant_id, id)
);
-- A request brings a key id before anyone knows its tenant: the one look-up without tenant_id.
create index api_keys_by_id on waybill.api_keys (id);

create table waybill.endpoints (
  tenant_id uuid not null references waybill.tenants (id),
  id uuid not null,
  url text not null check (char_length(url) between 1 and 2048),
  description text not null default '' check (char_length(description) <= 500),
  status text not null default 'enabled' check (status in ('enabled', 'paused', 'disabled')),
  revision integer not null default 1 check (revision > 0),
  secrets_version integer not null default 1 check (secrets_version > 0),
  version integer not null default 1 check (version > 0),
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  deleted_at timestamptz,
  primary key (tenant_id, id)
);
-- Tombstones whose queue rows are still to be cancelled; small, so upkeep may read it whole.
create index endpoints_deleted on waybill.endpoints (tenant_id, id) where deleted_at is not null;

create table waybill.endpoint_secrets (
  tenant_id uuid not null,
  endpoint_id uuid not null,
  id uuid not null,
  secret text not null check (char_length(secret) between 1 and 200),
  created_at timestamptz not null default now(),
  expires_at timestamptz,
  revoked_at timestamptz,
  primary key (tenant_id, endpoint_id, id),
  foreign key (tenant_id, endpoint_id) references waybill.endpoints (tenant_id, id)
);

create table waybill.subscriptions (
  tenant_id uuid not null,
  event_type text not null check (char_length(event_type) between 1 and 256),
  endpoint_id uuid not null,
  is_wildcard boolean not null generated always as (position('*' in event_type) > 0) stored,
  primary key (tenant_id, event_type, endpoint_id),
  foreign key (tenant_id, endpoint_id) references waybill.endpoints (tenant_id, id)
);
create index subscriptions_wildcard on waybill.subscriptions (tenant_id, endpoint_id) where is_wildcard;
create index subscriptions_by_endpoint on waybill.subscriptions (tenant_id, endpoint_id);
`;

/** Ids are immutable functions of a time, another id, or a random parameter: a write calls nothing volatile. */
const IDS = `
-- A UUIDv7 whose millisecond is the given time and whose other bits are those of a random (version 4) uuid.
create function waybill.event_id(at timestamptz, random uuid) returns uuid
language sql immutable strict parallel safe
return (lpad(to_hex(floor(extract(epoch from at) * 1000)::bigint), 12, '0') || '7'
  || substr(replace(random::text, '-', ''), 14))::uuid;

-- The lowest id of a millisecond: partition bounds and look-ups by range.
create function waybill.id_floor(at timestamptz) returns uuid
language sql immutable strict parallel safe
return (lpad(to_hex(floor(extract(epoch from at) * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid;

-- The id that (parent, child) always gives; it keeps the parent's millisecond, so that a look-up by it reads
-- one partition. A delivery's id is derived from (event, endpoint).
create function waybill.derived_id(parent uuid, child uuid) returns uuid
language sql immutable strict parallel safe
return (substr(replace(parent::text, '-', ''), 1, 12) || '7'
  || substr(encode(sha256(uuid_send(parent) || uuid_send(child)), 'hex'), 1, 3) || '8'
  || substr(encode(sha256(uuid_send(parent) || uuid_send(child)), 'hex'), 4, 15))::uuid;

-- Lowest and highest id that share this id's millisecond.
create function waybill.first_of_millisecond(id uuid) returns uuid
language sql immutable strict parallel safe
return (substr(replace(id::text, '-', ''), 1, 12) || repeat('0', 20))::uuid;

create function waybill.last_of_millisecond(id uuid) returns uuid
language sql immutable strict parallel safe
return (substr(replace(id::text, '-', ''), 1, 12) || repeat('f', 20))::uuid;
`;

const MATCHING = `
-- A subscription entry is dot-separated segments. \`*\` is one segment or, as the last, one or more of the rest:
-- payment.* matches payment.a and payment.a.b, never payment. No regular expression is involved.
create function waybill.event_type_matches(pattern text, event_type text) returns boolean
language plpgsql immutable strict parallel safe as $$
declare
  wanted text[] := string_to_array(pattern, '.');
  given text[] := string_to_array(event_type, '.');
  segments integer := cardinality(wanted);
  open_ended boolean := wanted[segments] = '*';
begin
  if cardinality(given) < segments or (cardinality(given) > segments and not open_ended) then
    return false;
  end if;
  for place in 1..segments loop
    if wanted[place] <> '*' and wanted[place] <> given[place] then
      return false;
    end if;
  end loop;
  return true;
end
$$;
`;

const RECORD = `
create table waybill.events (
  tenant_id uuid not null,
  id uuid not null,
  consumer_id uuid,
  event_type text not null check (char_length(event_type) between 1 and 256),
  payload bytea not null,
  content_type text not null,
  metadata jsonb,
  not_before timestamptz,
  target_count integer not null check (target_count >= 0),
  schema_checked boolean not null default false,
  created_at timestamptz not null,
  primary key (tenant_id, id)
) partition by range (id);

create table waybill.deliveries (
  tenant_id uuid not null,
  event_id uuid not null,
  endpoint_id uuid not null,
  id uuid not null,
  state text not null check (state in ('pending', 'failed', 'succeeded', 'dead', 'cancelled')),
  attempt_count integer not null default 0 check (attempt_count >= 0),
  cycle_attempt_count integer not null default 0 check (cycle_attempt_count between 0 and attempt_count),
  endpoint_revision integer not null,
  last_status_code integer,
  last_error_kind text,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  finished_at timestamptz,
  primary key (tenant_id, event_id, endpoint_id),
  check ((state in ('succeeded', 'dead', 'cancelled')) = (finished_at is not null))
) partition by range (event_id);
create index deliveries_by_endpoint on waybill.deliveries (tenant_id, endpoint_id, event_id);

create table waybill.attempts (
  tenant_id uuid not null,
  event_id uuid not null,
  endpoint_id uuid not null,
  number integer not null check (number > 0),
  outcome text not null check (outcome in ('succeeded', 'failed', 'lease_expired')),
  status_code integer,
  error_kind text,
  error text check (char_length(error) <= 500),
  response_body bytea check (octet_length(response_body) <= 500),
  endpoint_revision integer not null,
  started_at timestamptz not null,
  duration_ms double precision not null check (duration_ms >= 0),
  recorded_at timestamptz not null default now(),
  primary key (tenant_id, event_id, endpoint_id, number)
) partition by range (event_id);

create table waybill.dead_letters (
  tenant_id uuid not null,
  event_id uuid not null,
  endpoint_id uuid not null,
  delivery_id uuid not null,
  reason text not null check (reason in ('exhausted', 'expired', 'unsendable')),
  attempt_count integer not null,
  died_at timestamptz not null,
  resolved_at timestamptz,
  primary key (tenant_id, event_id, endpoint_id)
);
create index dead_letters_by_time on waybill.dead_letters (tenant_id, died_at, delivery_id);
create index dead_letters_unresolved on waybill.dead_letters (tenant_id, endpoint_id) where resolved_at is null;

create table waybill.replays (
  tenant_id uuid not null,
  id uuid not null,
  event_id uuid not null,
  endpoint_id uuid not null,
  delivery_id uuid not null,
  api_key_id uuid,
  created_at timestamptz not null,
  primary key (tenant_id, id)
);

create table waybill.idempotency_keys (
  tenant_id uuid not null,
  key text not null check (char_length(key) between 1 and 255),
  fingerprint bytea not null check (octet_length(fingerprint) = 32),
  resource_id uuid not null,
  created_at timestamptz not null,
  primary key (tenant_id, key)
);
create index idempotency_keys_by_age on waybill.idempotency_keys (created_at);
`;

/**
 * What is still owed, and nothing else. A claim writes only lease_until, claim_token and the two counts, none of
 * them indexed, so with half-filled pages it stays a HOT update (41–43 µs of PostgreSQL a delivery, against 63–77
 * where the claim moves due_at). Recording deletes the row or moves due_at.
 */
const QUEUE = `
create table waybill.delivery_queue (
  tenant_id uuid not null,
  event_id uuid not null,
  endpoint_id uuid not null,
  delivery_id uuid not null,
  due_at timestamptz not null,
  expires_at timestamptz not null,
  lease_until timestamptz,
  claim_token uuid,
  attempt_count integer not null default 0,
  cycle_attempt_count integer not null default 0,
  payload_bytes integer not null,
  primary key (tenant_id, event_id, endpoint_id),
  check ((lease_until is null) = (claim_token is null))
) with (
  fillfactor = 50,
  autovacuum_vacuum_scale_factor = 0,
  autovacuum_vacuum_threshold = 20000,
  autovacuum_vacuum_cost_delay = 0,
  vacuum_truncate = false
);
create index delivery_queue_claim on waybill.delivery_queue (tenant_id, endpoint_id, due_at);
create index delivery_queue_discover on waybill.delivery_queue (due_at, tenant_id, endpoint_id);
`;

/**
 * Day partitions are made as \`create table like\` and then attached: \`create … partition of\` behind an open
 * producer transaction stopped all inserts for 3 s. There is no default partition: a day nobody made is an error,
 * not a silent heap.
 */
const PARTITIONS = `
create function waybill.create_day_partitions(first_day date, days integer) returns integer
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

/**
 * The revision of the schema and the oldest code that can run on it. A process refuses to start when its own
 * revision lies outside [serves_code_from, revision].
 */
const REVISION = `
create table waybill.schema_revision (
  only_row boolean primary key default true check (only_row),
  revision integer not null check (revision > 0),
  serves_code_from integer not null check (serves_code_from between 1 and revision)
);
insert into waybill.schema_revision (revision, serves_code_from) values (1, 1);
`;

const DROP = `
drop table waybill.schema_revision;
drop function waybill.create_day_partitions(date, integer);
drop table waybill.delivery_queue, waybill.idempotency_keys, waybill.replays, waybill.dead_letters,
  waybill.attempts, waybill.deliveries, waybill.events, waybill.subscriptions, waybill.endpoint_secrets,
  waybill.endpoints, waybill.api_keys, waybill.tenants;
drop function waybill.event_type_matches(text, text);
drop function waybill.last_of_millisecond(uuid), waybill.first_of_millisecond(uuid),
  waybill.derived_id(uuid, uuid), waybill.id_floor(timestamptz), waybill.event_id(timestamptz, uuid);
`;
