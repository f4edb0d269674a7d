import type { TenantTransaction } from '#tenants';

/** Runs the database's part of a request in one transaction that sees the rows of one tenant only. */
export type InTenant = <Result>(
  tenantId: string,
  run: (tx: TenantTransaction) => Promise<Result>,
) => Promise<Result>;
