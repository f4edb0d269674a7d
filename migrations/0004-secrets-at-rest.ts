import type { MigrationInterface, QueryRunner } from 'typeorm';
import { policiesOf } from './0003-tenant-isolation/policies.js';

/**
 * Revision 4: endpoint secrets are sealed with a data key per tenant, and that is wrapped by a key from outside of the
 * database. SQL cannot know that key: a secret stays in clear until the first dispatcher starts and seals it, and the
 * table holds both shapes until a later release drops `secret`. Older code cannot read what is sealed.
 */
export class SecretsAtRest0004 implements MigrationInterface {
  name = 'secrets-at-rest-0000000000004';

  async up(runner: QueryRunner): Promise<void> {
    for (const statements of [DATA_KEYS, CANARY, SEALED, ACCESS, REVISION]) await runner.query(statements);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(REFUSE);
    await runner.query(DROP);
  }
}

/** `kek_version` says which key-encryption key wraps it, for whoever wraps it anew; the wrapped key says so itself. */
const DATA_KEYS = `
create table waybill.tenant_data_keys (
  tenant_id uuid not null references waybill.tenants (id),
  version integer not null check (version > 0),
  wrapped_key bytea not null check (octet_length(wrapped_key) = 65),
  kek_version integer not null check (kek_version > 0),
  created_at timestamptz not null default now(),
  primary key (tenant_id, version)
);
`;

/** A known text under each key-encryption key in use: whoever cannot open them all has the wrong key. */
const CANARY = `
create table waybill.encryption_canary (
  kek_version integer primary key check (kek_version > 0),
  sealed bytea not null check (octet_length(sealed) between 34 and 100),
  created_at timestamptz not null default now()
);
`;

const SEALED = `
alter table waybill.endpoint_secrets
  alter column secret drop not null,
  add column sealed_secret bytea check (octet_length(sealed_secret) between 34 and 900),
  add constraint endpoint_secrets_clear_or_sealed check ((secret is null) <> (sealed_secret is null));
-- What is still to be sealed: empty from the first start on.
create index endpoint_secrets_clear on waybill.endpoint_secrets (tenant_id, endpoint_id, id) where secret is not null;
`;

/**
 * As every table with a tenant has it (0003). The api seals: it makes a data key, and never changes one. The dispatcher
 * opens, seals what is in clear, and works for `waybill secrets rewrap`. The operator's pool checks the canary at the
 * start of an api.
 */
const ACCESS = `${policiesOf('tenant_data_keys', 'tenant_id')}
grant select, insert on waybill.tenant_data_keys to waybill_app;
grant select, insert, update (wrapped_key, kek_version) on waybill.tenant_data_keys to waybill_dispatcher;
grant select (tenant_id, version, kek_version) on waybill.tenant_data_keys to waybill_operator;
grant select, insert, delete on waybill.encryption_canary to waybill_dispatcher;
grant select, insert on waybill.encryption_canary to waybill_operator;
grant update (secret, sealed_secret) on waybill.endpoint_secrets to waybill_dispatcher;
`;

const REVISION = `
update waybill.schema_revision set revision = 4, serves_code_from = 4;
`;

/** What is sealed cannot be made clear here, and to drop it would leave endpoints that nothing can sign for. */
const REFUSE = `
do $$
begin
  if exists (select from waybill.endpoint_secrets where sealed_secret is not null) then
    raise exception 'there are sealed endpoint secrets, which older code cannot read'
      using hint = 'Restore a backup from before this migration, or delete the sealed secrets and give every endpoint a new one.';
  end if;
end
$$;
`;

const DROP = `
revoke update (secret, sealed_secret) on waybill.endpoint_secrets from waybill_dispatcher;
drop index waybill.endpoint_secrets_clear;
alter table waybill.endpoint_secrets
  drop constraint endpoint_secrets_clear_or_sealed,
  drop column sealed_secret,
  alter column secret set not null;
drop table waybill.encryption_canary, waybill.tenant_data_keys;
update waybill.schema_revision set revision = 3, serves_code_from = 1;
`;
