import type { MigrationInterface, QueryRunner } from 'typeorm';
import { PARTITIONS_V2 } from './0002-delivery-policies.js';
import { ROLE_GRANTS, REVOKE_GRANTS } from './0003-tenant-isolation/grants.js';
import { OPEN_PARTITIONS, OWNED_PARTITIONS } from './0003-tenant-isolation/partitions.js';
import { DROP_POLICIES, TENANT_POLICIES } from './0003-tenant-isolation/policies.js';

/**
 * Revision 3: row-level security on every table with a tenant, and what each role may touch. The roles themselves stand
 * before any migration runs (libs/runtime/prepare-roles.ts): they belong to the server, not to this database. Code of
 * revision 1 and 2 runs beside it as long as its login is the owner's or a superuser's, as it had to be.
 */
export class TenantIsolation0003 implements MigrationInterface {
  name = 'tenant-isolation-0000000000003';

  async up(runner: QueryRunner): Promise<void> {
    for (const statements of [OWNED_PARTITIONS, TENANT_POLICIES, ROLE_GRANTS, REVISION]) {
      await runner.query(statements);
    }
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('update waybill.schema_revision set revision = 2');
    await runner.query(REVOKE_GRANTS);
    await runner.query(DROP_POLICIES);
    await runner.query(OPEN_PARTITIONS);
    await runner.query(PARTITIONS_V2);
  }
}

const REVISION = `
update waybill.schema_revision set revision = 3;
`;
