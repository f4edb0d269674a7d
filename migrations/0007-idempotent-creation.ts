import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Revision 7: what a tenant's admins create is kept under an idempotency key too. Only who may write the keys changes:
 * the fingerprint says which route one was used on, and so of which kind its resource is. Older code beside it takes such
 * a key for one in progress, until it is gone.
 */
export class IdempotentCreation0007 implements MigrationInterface {
  name = 'idempotent-creation-0000000000007';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(GRANT_KEYS);
    await runner.query(REVISION);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('update waybill.schema_revision set revision = 6');
    await runner.query('revoke all on waybill.idempotency_keys from waybill_app, waybill_operator');
  }
}

const GRANT_KEYS = `
grant select, insert on waybill.idempotency_keys to waybill_app;
grant update (resource_id) on waybill.idempotency_keys to waybill_app;
-- The operator's requests belong to no tenant: their keys stand under the id of nobody.
grant select, insert, update (resource_id) on waybill.idempotency_keys to waybill_operator;
`;

const REVISION = `
update waybill.schema_revision set revision = 7;
`;
