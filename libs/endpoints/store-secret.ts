import { newId, transactionTimeMs } from '#runtime';
import { provideDataKey, sealSecret, type Keyring } from '#secrets';
import type { TenantTransaction } from '#tenants';
import { EndpointSecret } from './endpoint-secret.entity.js';

/** Stores a secret of an endpoint, sealed with the tenant's data key, and gives its id. */
export async function storeSecret(
  tx: TenantTransaction,
  tenantId: string,
  endpointId: string,
  secret: string,
  keyring: Keyring,
): Promise<string> {
  const id = newId(await transactionTimeMs(tx));
  const dataKey = await provideDataKey(tx, keyring, tenantId);
  const sealedSecret = sealSecret(dataKey, { tenantId, endpointId, secretId: id }, secret);
  await tx.getRepository(EndpointSecret).insert({ tenantId, endpointId, id, sealedSecret });
  return id;
}
