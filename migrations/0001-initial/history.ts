/** What happened: events, deliveries and attempts by the day of the event's id, dead letters, replays, keys used. */
export const RECORD = `
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
