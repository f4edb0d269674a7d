-- The schema after every migration, for reading and for review. Written by: npm run schema

create table waybill.announcements (
  tenant_id uuid not null,
  event_type text not null,
  subject_id uuid not null,
  endpoint_id uuid not null,
  event_id uuid,
  reason text,
  created_at timestamp with time zone not null,
  constraint announcements_created_at_check CHECK (((created_at > '-infinity'::timestamp with time zone) AND (created_at < '9999-12-31 00:00:00+00'::timestamp with time zone))),
  constraint announcements_event_type_check CHECK ((event_type = ANY (ARRAY['waybill.endpoint.disabled'::text, 'waybill.endpoint.recovered'::text, 'waybill.delivery.dead'::text]))),
  constraint announcements_pkey PRIMARY KEY (tenant_id, event_type, subject_id)
);
alter table waybill.announcements enable row level security, force row level security;
create policy every_tenant on waybill.announcements for all to waybill_dispatcher, waybill_intake, waybill_operator, waybill_owner
  using true
  with check true;
create policy one_tenant on waybill.announcements for all to waybill_app
  using (tenant_id = (NULLIF(current_setting('waybill.tenant'::text, true), ''::text))::uuid)
  with check (tenant_id = (NULLIF(current_setting('waybill.tenant'::text, true), ''::text))::uuid);
grant delete, insert, select, update on waybill.announcements to waybill_dispatcher;

create table waybill.api_keys (
  tenant_id uuid not null,
  id uuid not null,
  name text not null,
  secret_digest bytea not null,
  scopes text[] not null,
  created_at timestamp with time zone not null default now(),
  expires_at timestamp with time zone,
  revoked_at timestamp with time zone,
  version integer not null default 1,
  last_used_at timestamp with time zone,
  constraint api_keys_name_check CHECK (((char_length(name) >= 1) AND (char_length(name) <= 200))),
  constraint api_keys_pkey PRIMARY KEY (tenant_id, id),
  constraint api_keys_scopes_check CHECK (((cardinality(scopes) >= 1) AND (cardinality(scopes) <= 32))),
  constraint api_keys_secret_digest_check CHECK ((octet_length(secret_digest) = 32)),
  constraint api_keys_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES waybill.tenants(id),
  constraint api_keys_version_check CHECK ((version > 0))
) with (fillfactor=80);
CREATE INDEX api_keys_by_id ON waybill.api_keys USING btree (id);
alter table waybill.api_keys enable row level security, force row level security;
create policy every_tenant on waybill.api_keys for all to waybill_dispatcher, waybill_intake, waybill_operator, waybill_owner
  using true
  with check true;
create policy one_tenant on waybill.api_keys for all to waybill_app
  using (tenant_id = (NULLIF(current_setting('waybill.tenant'::text, true), ''::text))::uuid)
  with check (tenant_id = (NULLIF(current_setting('waybill.tenant'::text, true), ''::text))::uuid);
grant insert (tenant_id, id, name, secret_digest, scopes, created_at, expires_at), select (tenant_id, id, name, scopes, created_at, expires_at, revoked_at, version, last_used_at), update (name, expires_at, revoked_at, version) on waybill.api_keys to waybill_app;
grant select (tenant_id, id, secret_digest, scopes, expires_at, revoked_at) on waybill.api_keys to waybill_intake;
grant insert, select, update on waybill.api_keys to waybill_operator;

create table waybill.attempts (
  tenant_id uuid not null,
  event_id uuid not null,
  endpoint_id uuid not null,
  number integer not null,
  outcome text not null,
  status_code integer,
  error_kind text,
  error text,
  response_body bytea,
  endpoint_revision integer not null,
  started_at timestamp with time zone not null,
  duration_ms double precision not null,
  recorded_at timestamp with time zone not null default now(),
  constraint attempts_duration_ms_check CHECK ((duration_ms >= (0)::double precision)),
  constraint attempts_error_check CHECK ((char_length(error) <= 500)),
  constraint attempts_number_check CHECK ((number > 0)),
  constraint attempts_outcome_check CHECK ((outcome = ANY (ARRAY['succeeded'::text, 'failed'::text, 'lease_expired'::text]))),
  constraint attempts_pkey PRIMARY KEY (tenant_id, event_id, endpoint_id, number),
  constraint attempts_response_body_check CHECK ((octet_length(response_body) <= 500))
) partition by RANGE (event_id);
alter table waybill.attempts enable row level security, force row level security;
create policy every_tenant on waybill.attempts for all to waybill_dispatcher, waybill_intake, waybill_operator, waybill_owner
  using true
  with check true;
create policy one_tenant on waybill.attempts for all to waybill_app
  using (tenant_id = (NULLIF(current_setting('waybill.tenant'::text, true), ''::text))::uuid)
  with check (tenant_id = (NULLIF(current_setting('waybill.tenant'::text, true), ''::text))::uuid);
grant select on waybill.attempts to waybill_app;
grant insert, select, update on waybill.attempts to waybill_dispatcher;

create table waybill.circuits (
  tenant_id uuid not null,
  endpoint_id uuid not null,
  state text not null default 'closed'::text,
  consecutive_failures integer not null default 0,
  failing_since timestamp with time zone,
  last_failed_at timestamp with time zone,
  open_until timestamp with time zone,
  closed_at timestamp with time zone,
  probe_token uuid,
  probe_until timestamp with time zone,
  probe_event_id uuid,
  held_until timestamp with time zone,
  gone_at timestamp with time zone,
  constraint circuits_check CHECK (((state = 'open'::text) = (open_until IS NOT NULL))),
  constraint circuits_check1 CHECK (((probe_token IS NULL) = (probe_until IS NULL))),
  constraint circuits_check2 CHECK (((probe_token IS NULL) OR (state = 'open'::text))),
  constraint circuits_check3 CHECK (((open_until < '9999-12-31 00:00:00+00'::timestamp with time zone) AND (held_until < '9999-12-31 00:00:00+00'::timestamp with time zone) AND (closed_at < '9999-12-31 00:00:00+00'::timestamp with time zone))),
  constraint circuits_consecutive_failures_check CHECK ((consecutive_failures >= 0)),
  constraint circuits_pkey PRIMARY KEY (tenant_id, endpoint_id),
  constraint circuits_state_check CHECK ((state = ANY (ARRAY['closed'::text, 'open'::text])))
);
CREATE INDEX circuits_open ON waybill.circuits USING btree (open_until, tenant_id, endpoint_id) WHERE (state = 'open'::text);
alter table waybill.circuits enable row level security, force row level security;
create policy every_tenant on waybill.circuits for all to waybill_dispatcher, waybill_intake, waybill_operator, waybill_owner
  using true
  with check true;
create policy one_tenant on waybill.circuits for all to waybill_app
  using (tenant_id = (NULLIF(current_setting('waybill.tenant'::text, true), ''::text))::uuid)
  with check (tenant_id = (NULLIF(current_setting('waybill.tenant'::text, true), ''::text))::uuid);
grant delete, select, update on waybill.circuits to waybill_app;
grant insert, select, update on waybill.circuits to waybill_dispatcher;
grant select on waybill.circuits to waybill_intake;
grant select on waybill.circuits to waybill_operator;

create table waybill.consumers (
  tenant_id uuid not null,
  id uuid not null,
  uid text not null,
  name text not null default ''::text,
  metadata jsonb,
  version integer not null default 1,
  created_at timestamp with time zone not null default now(),
  updated_at timestamp with time zone not null default now(),
  deleted_at timestamp with time zone,
  constraint consumers_metadata_check CHECK ((jsonb_typeof(metadata) = 'object'::text)),
  constraint consumers_name_check CHECK ((char_length(name) <= 200)),
  constraint consumers_pkey PRIMARY KEY (tenant_id, id),
  constraint consumers_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES waybill.tenants(id),
  constraint consumers_uid_check CHECK (((char_length(uid) >= 1) AND (char_length(uid) <= 255))),
  constraint consumers_version_check CHECK ((version > 0))
);
CREATE UNIQUE INDEX consumers_by_uid ON waybill.consumers USING btree (tenant_id, uid) WHERE (deleted_at IS NULL);
alter table waybill.consumers enable row level security, force row level security;
create policy every_tenant on waybill.consumers for all to waybill_dispatcher, waybill_intake, waybill_operator, waybill_owner
  using true
  with check true;
create policy one_tenant on waybill.consumers for all to waybill_app
  using (tenant_id = (NULLIF(current_setting('waybill.tenant'::text, true), ''::text))::uuid)
  with check (tenant_id = (NULLIF(current_setting('waybill.tenant'::text, true), ''::text))::uuid);
grant insert, select, update on waybill.consumers to waybill_app;
grant select (tenant_id, id, uid, deleted_at) on waybill.consumers to waybill_dispatcher;
grant select (tenant_id, id, uid, deleted_at) on waybill.consumers to waybill_intake;

create table waybill.dead_letters (
  tenant_id uuid not null,
  event_id uuid not null,
  endpoint_id uuid not null,
  delivery_id uuid not null,
  reason text not null,
  attempt_count integer not null,
  died_at timestamp with time zone not null,
  resolved_at timestamp with time zone,
  constraint dead_letters_pkey PRIMARY KEY (tenant_id, event_id, endpoint_id),
  constraint dead_letters_reason_check CHECK ((reason = ANY (ARRAY['exhausted'::text, 'expired'::text, 'unsendable'::text, 'rejected'::text, 'gone'::text])))
);
CREATE INDEX dead_letters_by_time ON waybill.dead_letters USING btree (tenant_id, died_at, delivery_id);
CREATE INDEX dead_letters_unresolved ON waybill.dead_letters USING btree (tenant_id, endpoint_id) WHERE (resolved_at IS NULL);
alter table waybill.dead_letters enable row level security, force row level security;
create policy every_tenant on waybill.dead_letters for all to waybill_dispatcher, waybill_intake, waybill_operator, waybill_owner
  using true
  with check true;
create policy one_tenant on waybill.dead_letters for all to waybill_app
  using (tenant_id = (NULLIF(current_setting('waybill.tenant'::text, true), ''::text))::uuid)
  with check (tenant_id = (NULLIF(current_setting('waybill.tenant'::text, true), ''::text))::uuid);
grant select, update (resolved_at) on waybill.dead_letters to waybill_app;
grant insert, select, update on waybill.dead_letters to waybill_dispatcher;
grant select on waybill.dead_letters to waybill_operator;

create table waybill.deliveries (
  tenant_id uuid not null,
  event_id uuid not null,
  endpoint_id uuid not null,
  id uuid not null,
  state text not null,
  attempt_count integer not null default 0,
  cycle_attempt_count integer not null default 0,
  endpoint_revision integer not null,
  last_status_code integer,
  last_error_kind text,
  created_at timestamp with time zone not null,
  expires_at timestamp with time zone not null,
  finished_at timestamp with time zone,
  constraint deliveries_attempt_count_check CHECK ((attempt_count >= 0)),
  constraint deliveries_check CHECK (((cycle_attempt_count >= 0) AND (cycle_attempt_count <= attempt_count))),
  constraint deliveries_check1 CHECK (((state = ANY (ARRAY['succeeded'::text, 'dead'::text, 'cancelled'::text])) = (finished_at IS NOT NULL))),
  constraint deliveries_expires_check CHECK (((expires_at > '-infinity'::timestamp with time zone) AND (expires_at < '9999-12-31 00:00:00+00'::timestamp with time zone))),
  constraint deliveries_pkey PRIMARY KEY (tenant_id, event_id, endpoint_id),
  constraint deliveries_state_check CHECK ((state = ANY (ARRAY['pending'::text, 'failed'::text, 'succeeded'::text, 'dead'::text, 'cancelled'::text])))
) partition by RANGE (event_id);
CREATE INDEX deliveries_by_endpoint ON ONLY waybill.deliveries USING btree (tenant_id, endpoint_id, event_id);
alter table waybill.deliveries enable row level security, force row level security;
create policy every_tenant on waybill.deliveries for all to waybill_dispatcher, waybill_intake, waybill_operator, waybill_owner
  using true
  with check true;
create policy one_tenant on waybill.deliveries for all to waybill_app
  using (tenant_id = (NULLIF(current_setting('waybill.tenant'::text, true), ''::text))::uuid)
  with check (tenant_id = (NULLIF(current_setting('waybill.tenant'::text, true), ''::text))::uuid);
grant insert, select, update on waybill.deliveries to waybill_app;
grant insert, select, update on waybill.deliveries to waybill_dispatcher;
grant insert, select on waybill.deliveries to waybill_intake;

create table waybill.delivery_queue (
  tenant_id uuid not null,
  event_id uuid not null,
  endpoint_id uuid not null,
  delivery_id uuid not null,
  due_at timestamp with time zone not null,
  expires_at timestamp with time zone not null,
  lease_until timestamp with time zone,
  claim_token uuid,
  attempt_count integer not null default 0,
  cycle_attempt_count integer not null default 0,
  payload_bytes integer not null,
  constraint delivery_queue_check CHECK (((lease_until IS NULL) = (claim_token IS NULL))),
  constraint delivery_queue_counts_check CHECK (((attempt_count >= 0) AND ((cycle_attempt_count >= 0) AND (cycle_attempt_count <= attempt_count)))),
  constraint delivery_queue_pkey PRIMARY KEY (tenant_id, event_id, endpoint_id),
  constraint delivery_queue_times_check CHECK (((due_at > '-infinity'::timestamp with time zone) AND (due_at < '9999-12-31 00:00:00+00'::timestamp with time zone) AND (expires_at > '-infinity'::timestamp with time zone) AND (expires_at < '9999-12-31 00:00:00+00'::timestamp with time zone)))
) with (fillfactor=50, autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=20000, autovacuum_vacuum_cost_delay=0, vacuum_truncate=false);
CREATE INDEX delivery_queue_claim ON waybill.delivery_queue USING btree (tenant_id, endpoint_id, due_at);
CREATE INDEX delivery_queue_discover ON waybill.delivery_queue USING btree (due_at, tenant_id, endpoint_id);
alter table waybill.delivery_queue enable row level security, force row level security;
create policy every_tenant on waybill.delivery_queue for all to waybill_dispatcher, waybill_intake, waybill_operator, waybill_owner
  using true
  with check true;
create policy one_tenant on waybill.delivery_queue for all to waybill_app
  using (tenant_id = (NULLIF(current_setting('waybill.tenant'::text, true), ''::text))::uuid)
  with check (tenant_id = (NULLIF(current_setting('waybill.tenant'::text, true), ''::text))::uuid);
grant delete, insert, select, update on waybill.delivery_queue to waybill_app;
grant delete, insert, select, update on waybill.delivery_queue to waybill_dispatcher;
grant insert, select on waybill.delivery_queue to waybill_intake;
grant select on waybill.delivery_queue to waybill_operator;

create table waybill.encryption_canary (
  kek_version integer not null,
  sealed bytea not null,
  created_at timestamp with time zone not null default now(),
  constraint encryption_canary_kek_version_check CHECK ((kek_version > 0)),
  constraint encryption_canary_pkey PRIMARY KEY (kek_version),
  constraint encryption_canary_sealed_check CHECK (((octet_length(sealed) >= 34) AND (octet_length(sealed) <= 100)))
);
grant delete, insert, select on waybill.encryption_canary to waybill_dispatcher;
grant insert, select on waybill.encryption_canary to waybill_operator;

create table waybill.endpoint_secrets (
  tenant_id uuid not null,
  endpoint_id uuid not null,
  id uuid not null,
  secret text,
  created_at timestamp with time zone not null default now(),
  expires_at timestamp with time zone,
  revoked_at timestamp with time zone,
  sealed_secret bytea,
  constraint endpoint_secrets_clear_or_sealed CHECK (((secret IS NULL) <> (sealed_secret IS NULL))),
  constraint endpoint_secrets_pkey PRIMARY KEY (tenant_id, endpoint_id, id),
  constraint endpoint_secrets_sealed_secret_check CHECK (((octet_length(sealed_secret) >= 34) AND (octet_length(sealed_secret) <= 900))),
  constraint endpoint_secrets_secret_check CHECK (((char_length(secret) >= 1) AND (char_length(secret) <= 200))),
  constraint endpoint_secrets_tenant_id_endpoint_id_fkey FOREIGN KEY (tenant_id, endpoint_id) REFERENCES waybill.endpoints(tenant_id, id)
);
CREATE INDEX endpoint_secrets_clear ON waybill.endpoint_secrets USING btree (tenant_id, endpoint_id, id) WHERE (secret IS NOT NULL);
alter table waybill.endpoint_secrets enable row level security, force row level security;
create policy every_tenant on waybill.endpoint_secrets for all to waybill_dispatcher, waybill_intake, waybill_operator, waybill_owner
  using true
  with check true;
create policy one_tenant on waybill.endpoint_secrets for all to waybill_app
  using (tenant_id = (NULLIF(current_setting('waybill.tenant'::text, true), ''::text))::uuid)
  with check (tenant_id = (NULLIF(current_setting('waybill.tenant'::text, true), ''::text))::uuid);
grant insert, select, update on waybill.endpoint_secrets to waybill_app;
grant select, update (secret, sealed_secret) on waybill.endpoint_secrets to waybill_dispatcher;

create table waybill.endpoints (
  tenant_id uuid not null,
  id uuid not null,
  url text not null,
  description text not null default ''::text,
  status text not null default 'enabled'::text,
  revision integer not null default 1,
  secrets_version integer not null default 1,
  version integer not null default 1,
  created_at timestamp with time zone not null default now(),
  updated_at timestamp with time zone not null default now(),
  deleted_at timestamp with time zone,
  retry jsonb,
  max_age_ms bigint,
  connect_timeout_ms integer,
  attempt_timeout_ms integer,
  rate_per_second double precision,
  concurrency integer,
  circuit_failures integer,
  circuit_failure_ratio double precision,
  circuit_open_ms integer,
  disabled_reason text,
  consumer_id uuid,
  addressee_id uuid not null generated always as (COALESCE(consumer_id, tenant_id)) stored,
  filter jsonb,
  filter_path jsonpath,
  constraint endpoints_addressee_key UNIQUE (tenant_id, id, addressee_id),
  constraint endpoints_attempt_timeout_ms_check CHECK (((attempt_timeout_ms >= 100) AND (attempt_timeout_ms <= 300000))),
  constraint endpoints_circuit_failure_ratio_check CHECK (((circuit_failure_ratio >= (0.01)::double precision) AND (circuit_failure_ratio <= (1)::double precision))),
  constraint endpoints_circuit_failures_check CHECK (((circuit_failures >= 0) AND (circuit_failures <= 1000))),
  constraint endpoints_circuit_open_ms_check CHECK (((circuit_open_ms >= 100) AND (circuit_open_ms <= 3600000))),
  constraint endpoints_concurrency_check CHECK (((concurrency >= 1) AND (concurrency <= 2048))),
  constraint endpoints_connect_timeout_ms_check CHECK (((connect_timeout_ms >= 50) AND (connect_timeout_ms <= 60000))),
  constraint endpoints_description_check CHECK ((char_length(description) <= 500)),
  constraint endpoints_disabled_for_a_reason CHECK (((disabled_reason IS NULL) OR (status = 'disabled'::text))),
  constraint endpoints_disabled_reason_check CHECK ((disabled_reason = ANY (ARRAY['gone'::text, 'failing'::text]))),
  constraint endpoints_filter_check CHECK ((jsonb_typeof(filter) = 'object'::text)),
  constraint endpoints_filter_with_its_path CHECK (((filter IS NULL) = (filter_path IS NULL))),
  constraint endpoints_max_age_ms_check CHECK (((max_age_ms >= 1000) AND (max_age_ms <= '7776000000'::bigint))),
  constraint endpoints_pkey PRIMARY KEY (tenant_id, id),
  constraint endpoints_rate_per_second_check CHECK (((rate_per_second >= (0.001)::double precision) AND (rate_per_second <= (10000)::double precision))),
  constraint endpoints_retry_check CHECK ((jsonb_typeof(retry) = 'object'::text)),
  constraint endpoints_revision_check CHECK ((revision > 0)),
  constraint endpoints_secrets_version_check CHECK ((secrets_version > 0)),
  constraint endpoints_status_check CHECK ((status = ANY (ARRAY['enabled'::text, 'paused'::text, 'disabled'::text]))),
  constraint endpoints_tenant_id_consumer_id_fkey FOREIGN KEY (tenant_id, consumer_id) REFERENCES waybill.consumers(tenant_id, id),
  constraint endpoints_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES waybill.tenants(id),
  constraint endpoints_url_check CHECK (((char_length(url) >= 1) AND (char_length(url) <= 2048))),
  constraint endpoints_version_check CHECK ((version > 0))
);
CREATE INDEX endpoints_by_consumer ON waybill.endpoints USING btree (tenant_id, consumer_id, id) WHERE (consumer_id IS NOT NULL);
CREATE INDEX endpoints_deleted ON waybill.endpoints USING btree (tenant_id, id) WHERE (deleted_at IS NOT NULL);
CREATE INDEX endpoints_filtered ON waybill.endpoints USING btree (tenant_id) WHERE (filter_path IS NOT NULL);
alter table waybill.endpoints enable row level security, force row level security;
create policy every_tenant on waybill.endpoints for all to waybill_dispatcher, waybill_intake, waybill_operator, waybill_owner
  using true
  with check true;
create policy one_tenant on waybill.endpoints for all to waybill_app
  using (tenant_id = (NULLIF(current_setting('waybill.tenant'::text, true), ''::text))::uuid)
  with check (tenant_id = (NULLIF(current_setting('waybill.tenant'::text, true), ''::text))::uuid);
grant insert, select, update on waybill.endpoints to waybill_app;
grant select, update on waybill.endpoints to waybill_dispatcher;
grant select on waybill.endpoints to waybill_intake;
grant select on waybill.endpoints to waybill_operator;

create table waybill.events (
  tenant_id uuid not null,
  id uuid not null,
  consumer_id uuid,
  event_type text not null,
  payload bytea not null,
  content_type text not null,
  metadata jsonb,
  not_before timestamp with time zone,
  target_count integer not null,
  schema_checked boolean not null default false,
  created_at timestamp with time zone not null,
  unfilterable boolean not null default false,
  constraint events_event_type_check CHECK (((char_length(event_type) >= 1) AND (char_length(event_type) <= 256))),
  constraint events_pkey PRIMARY KEY (tenant_id, id),
  constraint events_target_count_check CHECK ((target_count >= 0))
) partition by RANGE (id);
CREATE INDEX events_by_consumer ON ONLY waybill.events USING btree (tenant_id, consumer_id, id) WHERE (consumer_id IS NOT NULL);
alter table waybill.events enable row level security, force row level security;
create policy every_tenant on waybill.events for all to waybill_dispatcher, waybill_intake, waybill_operator, waybill_owner
  using true
  with check true;
create policy one_tenant on waybill.events for all to waybill_app
  using (tenant_id = (NULLIF(current_setting('waybill.tenant'::text, true), ''::text))::uuid)
  with check (tenant_id = (NULLIF(current_setting('waybill.tenant'::text, true), ''::text))::uuid);
grant select, update (target_count) on waybill.events to waybill_app;
grant insert, select on waybill.events to waybill_dispatcher;
grant insert, select on waybill.events to waybill_intake;

create table waybill.idempotency_keys (
  tenant_id uuid not null,
  key text not null,
  fingerprint bytea not null,
  resource_id uuid not null,
  created_at timestamp with time zone not null,
  constraint idempotency_keys_fingerprint_check CHECK ((octet_length(fingerprint) = 32)),
  constraint idempotency_keys_key_check CHECK (((char_length(key) >= 1) AND (char_length(key) <= 255))),
  constraint idempotency_keys_pkey PRIMARY KEY (tenant_id, key)
);
CREATE INDEX idempotency_keys_by_age ON waybill.idempotency_keys USING btree (created_at);
alter table waybill.idempotency_keys enable row level security, force row level security;
create policy every_tenant on waybill.idempotency_keys for all to waybill_dispatcher, waybill_intake, waybill_operator, waybill_owner
  using true
  with check true;
create policy one_tenant on waybill.idempotency_keys for all to waybill_app
  using (tenant_id = (NULLIF(current_setting('waybill.tenant'::text, true), ''::text))::uuid)
  with check (tenant_id = (NULLIF(current_setting('waybill.tenant'::text, true), ''::text))::uuid);
grant insert, select, update (resource_id) on waybill.idempotency_keys to waybill_app;
grant delete, insert, select, update on waybill.idempotency_keys to waybill_dispatcher;
grant insert, select on waybill.idempotency_keys to waybill_intake;
grant insert, select, update (resource_id) on waybill.idempotency_keys to waybill_operator;

create table waybill.rate_tokens (
  tenant_id uuid not null,
  endpoint_id uuid not null,
  tokens double precision not null,
  refilled_at timestamp with time zone not null,
  constraint rate_tokens_pkey PRIMARY KEY (tenant_id, endpoint_id),
  constraint rate_tokens_tokens_check CHECK (((tokens >= (0)::double precision) AND (tokens <= (10000)::double precision)))
) with (fillfactor=50);
alter table waybill.rate_tokens enable row level security, force row level security;
create policy every_tenant on waybill.rate_tokens for all to waybill_dispatcher, waybill_intake, waybill_operator, waybill_owner
  using true
  with check true;
create policy one_tenant on waybill.rate_tokens for all to waybill_app
  using (tenant_id = (NULLIF(current_setting('waybill.tenant'::text, true), ''::text))::uuid)
  with check (tenant_id = (NULLIF(current_setting('waybill.tenant'::text, true), ''::text))::uuid);
grant delete, select on waybill.rate_tokens to waybill_app;
grant insert, select, update on waybill.rate_tokens to waybill_dispatcher;

create table waybill.replays (
  tenant_id uuid not null,
  id uuid not null,
  event_id uuid not null,
  endpoint_id uuid not null,
  delivery_id uuid not null,
  api_key_id uuid,
  created_at timestamp with time zone not null,
  constraint replays_pkey PRIMARY KEY (tenant_id, id)
);
alter table waybill.replays enable row level security, force row level security;
create policy every_tenant on waybill.replays for all to waybill_dispatcher, waybill_intake, waybill_operator, waybill_owner
  using true
  with check true;
create policy one_tenant on waybill.replays for all to waybill_app
  using (tenant_id = (NULLIF(current_setting('waybill.tenant'::text, true), ''::text))::uuid)
  with check (tenant_id = (NULLIF(current_setting('waybill.tenant'::text, true), ''::text))::uuid);
grant insert, select on waybill.replays to waybill_app;

create table waybill.replicas (
  id uuid not null,
  started_at timestamp with time zone not null,
  heartbeat_at timestamp with time zone not null,
  tenants_at_cap uuid[] not null default '{}'::uuid[],
  endpoints_at_cap uuid[] not null default '{}'::uuid[],
  slots_full boolean not null default false,
  constraint replicas_pkey PRIMARY KEY (id)
);
grant select on waybill.replicas to waybill_app;
grant delete, insert, select, update on waybill.replicas to waybill_dispatcher;

create table waybill.schema_revision (
  only_row boolean not null default true,
  revision integer not null,
  serves_code_from integer not null,
  constraint schema_revision_check CHECK (((serves_code_from >= 1) AND (serves_code_from <= revision))),
  constraint schema_revision_only_row_check CHECK (only_row),
  constraint schema_revision_pkey PRIMARY KEY (only_row),
  constraint schema_revision_revision_check CHECK ((revision > 0))
);
grant select on waybill.schema_revision to waybill_app;
grant select on waybill.schema_revision to waybill_dispatcher;
grant select on waybill.schema_revision to waybill_intake;
grant select on waybill.schema_revision to waybill_operator;

create table waybill.subscriptions (
  tenant_id uuid not null,
  event_type text not null,
  endpoint_id uuid not null,
  is_wildcard boolean not null generated always as ((POSITION(('*'::text) IN (event_type)) > 0)) stored,
  consumer_id uuid,
  addressee_id uuid not null generated always as (COALESCE(consumer_id, tenant_id)) stored,
  constraint subscriptions_event_type_check CHECK (((char_length(event_type) >= 1) AND (char_length(event_type) <= 256))),
  constraint subscriptions_pkey PRIMARY KEY (tenant_id, addressee_id, event_type, endpoint_id),
  constraint subscriptions_tenant_id_endpoint_id_addressee_id_fkey FOREIGN KEY (tenant_id, endpoint_id, addressee_id) REFERENCES waybill.endpoints(tenant_id, id, addressee_id)
);
CREATE INDEX subscriptions_by_endpoint ON waybill.subscriptions USING btree (tenant_id, endpoint_id);
CREATE INDEX subscriptions_wildcard ON waybill.subscriptions USING btree (tenant_id, addressee_id, endpoint_id) WHERE is_wildcard;
alter table waybill.subscriptions enable row level security, force row level security;
create policy every_tenant on waybill.subscriptions for all to waybill_dispatcher, waybill_intake, waybill_operator, waybill_owner
  using true
  with check true;
create policy one_tenant on waybill.subscriptions for all to waybill_app
  using (tenant_id = (NULLIF(current_setting('waybill.tenant'::text, true), ''::text))::uuid)
  with check (tenant_id = (NULLIF(current_setting('waybill.tenant'::text, true), ''::text))::uuid);
grant delete, insert, select on waybill.subscriptions to waybill_app;
grant select on waybill.subscriptions to waybill_dispatcher;
grant select on waybill.subscriptions to waybill_intake;

create table waybill.tenant_data_keys (
  tenant_id uuid not null,
  version integer not null,
  wrapped_key bytea not null,
  kek_version integer not null,
  created_at timestamp with time zone not null default now(),
  constraint tenant_data_keys_kek_version_check CHECK ((kek_version > 0)),
  constraint tenant_data_keys_pkey PRIMARY KEY (tenant_id, version),
  constraint tenant_data_keys_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES waybill.tenants(id),
  constraint tenant_data_keys_version_check CHECK ((version > 0)),
  constraint tenant_data_keys_wrapped_key_check CHECK ((octet_length(wrapped_key) = 65))
);
alter table waybill.tenant_data_keys enable row level security, force row level security;
create policy every_tenant on waybill.tenant_data_keys for all to waybill_dispatcher, waybill_intake, waybill_operator, waybill_owner
  using true
  with check true;
create policy one_tenant on waybill.tenant_data_keys for all to waybill_app
  using (tenant_id = (NULLIF(current_setting('waybill.tenant'::text, true), ''::text))::uuid)
  with check (tenant_id = (NULLIF(current_setting('waybill.tenant'::text, true), ''::text))::uuid);
grant insert, select on waybill.tenant_data_keys to waybill_app;
grant insert, select, update (wrapped_key, kek_version) on waybill.tenant_data_keys to waybill_dispatcher;
grant select (tenant_id, version, kek_version) on waybill.tenant_data_keys to waybill_operator;

create table waybill.tenants (
  id uuid not null,
  name text not null,
  created_at timestamp with time zone not null default now(),
  suspended_at timestamp with time zone,
  version integer not null default 1,
  updated_at timestamp with time zone not null default now(),
  deleted_at timestamp with time zone,
  deletion_awaits text[],
  constraint tenants_deleted_is_suspended CHECK (((deleted_at IS NULL) OR (suspended_at IS NOT NULL))),
  constraint tenants_name_check CHECK (((char_length(name) >= 1) AND (char_length(name) <= 200))),
  constraint tenants_pkey PRIMARY KEY (id),
  constraint tenants_version_check CHECK ((version > 0))
);
CREATE INDEX tenants_deleted ON waybill.tenants USING btree (deleted_at) WHERE (deleted_at IS NOT NULL);
alter table waybill.tenants enable row level security, force row level security;
create policy every_tenant on waybill.tenants for all to waybill_dispatcher, waybill_intake, waybill_operator, waybill_owner
  using true
  with check true;
create policy one_tenant on waybill.tenants for all to waybill_app
  using (id = (NULLIF(current_setting('waybill.tenant'::text, true), ''::text))::uuid)
  with check (id = (NULLIF(current_setting('waybill.tenant'::text, true), ''::text))::uuid);
grant select on waybill.tenants to waybill_app;
grant select on waybill.tenants to waybill_dispatcher;
grant select (id, suspended_at, deleted_at) on waybill.tenants to waybill_intake;
grant insert, select, update on waybill.tenants to waybill_operator;

CREATE OR REPLACE FUNCTION waybill.create_day_partitions(first_day date, days integer)
 RETURNS integer
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
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
      execute format('alter table waybill.%I enable row level security, force row level security', child);
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
$function$
;
grant execute on function waybill.create_day_partitions(date,integer) to waybill_dispatcher;
grant execute on function waybill.create_day_partitions(date,integer) to waybill_operator;

CREATE OR REPLACE FUNCTION waybill.derived_id(parent uuid, child uuid)
 RETURNS uuid
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE STRICT
RETURN (((((substr(replace((parent)::text, '-'::text, ''::text), 1, 12) || '7'::text) || substr(encode(sha256((uuid_send(parent) || uuid_send(child))), 'hex'::text), 1, 3)) || '8'::text) || substr(encode(sha256((uuid_send(parent) || uuid_send(child))), 'hex'::text), 4, 15)))::uuid
;
grant execute on function waybill.derived_id(uuid,uuid) to waybill_app;
grant execute on function waybill.derived_id(uuid,uuid) to waybill_dispatcher;
grant execute on function waybill.derived_id(uuid,uuid) to waybill_intake;
grant execute on function waybill.derived_id(uuid,uuid) to waybill_operator;

CREATE OR REPLACE FUNCTION waybill.event_id(at timestamp with time zone, random uuid)
 RETURNS uuid
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE STRICT
RETURN (((lpad(to_hex((floor((EXTRACT(epoch FROM at) * (1000)::numeric)))::bigint), 12, '0'::text) || '7'::text) || substr(replace((random)::text, '-'::text, ''::text), 14)))::uuid
;
grant execute on function waybill.event_id(timestamp with time zone,uuid) to waybill_app;
grant execute on function waybill.event_id(timestamp with time zone,uuid) to waybill_dispatcher;
grant execute on function waybill.event_id(timestamp with time zone,uuid) to waybill_intake;
grant execute on function waybill.event_id(timestamp with time zone,uuid) to waybill_operator;

CREATE OR REPLACE FUNCTION waybill.event_type_matches(pattern text, event_type text)
 RETURNS boolean
 LANGUAGE plpgsql
 IMMUTABLE PARALLEL SAFE STRICT
AS $function$
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
$function$
;
grant execute on function waybill.event_type_matches(text,text) to waybill_app;
grant execute on function waybill.event_type_matches(text,text) to waybill_dispatcher;
grant execute on function waybill.event_type_matches(text,text) to waybill_intake;
grant execute on function waybill.event_type_matches(text,text) to waybill_operator;

CREATE OR REPLACE FUNCTION waybill.first_of_millisecond(id uuid)
 RETURNS uuid
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE STRICT
RETURN ((substr(replace((id)::text, '-'::text, ''::text), 1, 12) || repeat('0'::text, 20)))::uuid
;
grant execute on function waybill.first_of_millisecond(uuid) to waybill_app;
grant execute on function waybill.first_of_millisecond(uuid) to waybill_dispatcher;
grant execute on function waybill.first_of_millisecond(uuid) to waybill_intake;
grant execute on function waybill.first_of_millisecond(uuid) to waybill_operator;

CREATE OR REPLACE FUNCTION waybill.id_floor(at timestamp with time zone)
 RETURNS uuid
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE STRICT
RETURN ((lpad(to_hex((floor((EXTRACT(epoch FROM at) * (1000)::numeric)))::bigint), 12, '0'::text) || repeat('0'::text, 20)))::uuid
;
grant execute on function waybill.id_floor(timestamp with time zone) to waybill_app;
grant execute on function waybill.id_floor(timestamp with time zone) to waybill_dispatcher;
grant execute on function waybill.id_floor(timestamp with time zone) to waybill_intake;
grant execute on function waybill.id_floor(timestamp with time zone) to waybill_operator;

CREATE OR REPLACE FUNCTION waybill.last_of_millisecond(id uuid)
 RETURNS uuid
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE STRICT
RETURN ((substr(replace((id)::text, '-'::text, ''::text), 1, 12) || repeat('f'::text, 20)))::uuid
;
grant execute on function waybill.last_of_millisecond(uuid) to waybill_app;
grant execute on function waybill.last_of_millisecond(uuid) to waybill_dispatcher;
grant execute on function waybill.last_of_millisecond(uuid) to waybill_intake;
grant execute on function waybill.last_of_millisecond(uuid) to waybill_operator;

CREATE OR REPLACE FUNCTION waybill.payload_json(payload bytea)
 RETURNS jsonb
 LANGUAGE plpgsql
 IMMUTABLE PARALLEL SAFE STRICT
AS $function$
begin
  return convert_from(payload, 'UTF8')::jsonb;
exception when data_exception or program_limit_exceeded then
  return null;
end
$function$
;
grant execute on function waybill.payload_json(bytea) to waybill_app;
grant execute on function waybill.payload_json(bytea) to waybill_dispatcher;
grant execute on function waybill.payload_json(bytea) to waybill_intake;

CREATE OR REPLACE FUNCTION waybill.purge_tenant(tenant uuid, row_limit integer)
 RETURNS integer
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET enable_seqscan TO 'off'
 SET enable_bitmapscan TO 'off'
AS $function$
declare
  tables regclass[];
  target regclass;
  removed integer;
begin
  if not pg_try_advisory_xact_lock(hashtextextended('waybill.tenant ' || tenant, 0)) then
    return 0;
  end if;
  if not exists (select from waybill.tenants t where t.id = tenant and t.deleted_at is not null) then
    return null;
  end if;
  with recursive owned as (
    select c.oid
    from pg_class c
    join pg_attribute a on a.attrelid = c.oid and a.attname = 'tenant_id' and not a.attisdropped
    where c.relnamespace = 'waybill'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
  ),
  placed as (
    select o.oid, 0 as depth from owned o
    union
    select k.confrelid, p.depth + 1
    from placed p
    join pg_constraint k on k.conrelid = p.oid and k.contype = 'f' and k.confrelid <> k.conrelid
    where p.depth < 32
  )
  select array_agg(d.oid::regclass order by d.oid = 'waybill.delivery_queue'::regclass desc, d.depth, d.oid)
  into tables
  from (select p.oid, max(p.depth) as depth from placed p join owned o on o.oid = p.oid group by p.oid) d;
  update waybill.tenants t
  set deletion_awaits = array(
    select distinct l.virtualtransaction
    from pg_locks l
    where l.database = (select d.oid from pg_database d where d.datname = current_database())
      and l.relation = any (tables::oid[]) and l.mode = 'RowExclusiveLock' and l.pid <> pg_backend_pid())
  where t.id = tenant and t.deletion_awaits is null;
  foreach target in array tables loop
    -- A place may name another row of the tenant in another partition: it goes, too.
    execute format('delete from %1$s where tenant_id = $1 and ctid = any (array('
      'select ctid from %1$s where tenant_id = $1 limit $2))', target) using tenant, row_limit;
    get diagnostics removed = row_count;
    if removed > 0 then
      return removed;
    end if;
  end loop;
  if exists (select from pg_locks l, waybill.tenants t where t.id = tenant and l.virtualtransaction = any (t.deletion_awaits)) then
    return 0;
  end if;
  delete from waybill.tenants t where t.id = tenant;
  return null;
end
$function$
;
grant execute on function waybill.purge_tenant(uuid,integer) to waybill_dispatcher;
