/** Who uses it and where to: tenants, their keys, endpoints with secrets and subscriptions. */
export const CATALOGUE = `
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
