import type { MigrationInterface, QueryRunner } from 'typeorm';
import { DROP_PURGE, PURGE_TENANT } from './0005-operator-and-keys/purge.js';

/**
 * Revision 5: tenants that are deleted, and API keys that are managed by requests. Code of earlier revisions can run
 * beside it; it does not know of a tombstone, but a deleted tenant is a suspended one to it.
 */
export class OperatorAndKeys0005 implements MigrationInterface {
  name = 'operator-and-keys-0000000000005';

  async up(runner: QueryRunner): Promise<void> {
    for (const statements of [TENANTS, PURGE_TENANT, API_KEYS, GRANTS, REVISION])
      await runner.query(statements);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('update waybill.schema_revision set revision = 4');
    await runner.query(DROP_PURGE);
    await runner.query(DROP);
  }
}

const TENANTS = `
alter table waybill.tenants
  add column version integer not null default 1 check (version > 0),
  add column updated_at timestamptz not null default now(),
  add column deleted_at timestamptz,
  add constraint tenants_deleted_is_suspended check (deleted_at is null or suspended_at is not null);
update waybill.tenants set updated_at = created_at;
create index tenants_deleted on waybill.tenants (deleted_at) where deleted_at is not null;
`;

/** Room for \`last_used_at\` beside the row: it is in no index, so noting it moves nothing else. */
const API_KEYS = `
alter table waybill.api_keys
  add column version integer not null default 1 check (version > 0),
  add column last_used_at timestamptz;
alter table waybill.api_keys set (fillfactor = 80);
`;

/** No request of a tenant reads a digest; what it may change of a key is its name and its end. */
const GRANTS = `
grant select (tenant_id, id, name, scopes, created_at, expires_at, revoked_at, last_used_at, version)
  on waybill.api_keys to waybill_app;
grant insert (tenant_id, id, name, secret_digest, scopes, created_at, expires_at) on waybill.api_keys to waybill_app;
grant update (name, expires_at, revoked_at, version) on waybill.api_keys to waybill_app;
grant select (deleted_at) on waybill.tenants to waybill_intake;
`;

const REVISION = `
update waybill.schema_revision set revision = 5;
`;

const DROP = `
revoke select (tenant_id, id, name, scopes, created_at, expires_at, revoked_at, last_used_at, version)
  on waybill.api_keys from waybill_app;
revoke insert (tenant_id, id, name, secret_digest, scopes, created_at, expires_at) on waybill.api_keys from waybill_app;
revoke update (name, expires_at, revoked_at, version) on waybill.api_keys from waybill_app;
revoke select (deleted_at) on waybill.tenants from waybill_intake;
alter table waybill.api_keys reset (fillfactor);
alter table waybill.api_keys drop column version, drop column last_used_at;
drop index waybill.tenants_deleted;
alter table waybill.tenants
  drop constraint tenants_deleted_is_suspended,
  drop column version, drop column updated_at, drop column deleted_at;
`;
