import { IsNull } from 'typeorm';
import { AppError, type VersionExpectation } from '#runtime';
import type { TenantTransaction } from '#tenants';
import { Endpoint } from './endpoint.entity.js';

/**
 * Reads an endpoint and locks its row until the transaction ends. Throws `endpoint_not_found`, or `stale_version` when
 * the caller expects another one.
 */
export async function lockEndpoint(
  tx: TenantTransaction,
  tenantId: string,
  endpointId: string,
  expects: VersionExpectation,
): Promise<Endpoint> {
  const endpoint = await tx.getRepository(Endpoint).findOne({
    where: { tenantId, id: endpointId, deletedAt: IsNull() },
    lock: { mode: 'pessimistic_write' },
  });
  if (endpoint === null) throw new AppError('endpoint_not_found');
  if (!expects(endpoint.version)) {
    throw new AppError('stale_version', `The endpoint is at version ${endpoint.version}.`);
  }
  return endpoint;
}
