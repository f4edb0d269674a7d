import type { EntityManager } from 'typeorm';
import { newId } from '#runtime';
import { provideDataKey, sealSecret, type Keyring } from '#secrets';
import { asQueryable } from './as-queryable.js';
import { EndpointSecret } from './endpoint-secret.entity.js';

/** Stores a secret of an endpoint, sealed with the tenant's data key, and gives its id; run it inside a transaction. */
export async function storeSecret(
  tx: EntityManager,
  tenantId: string,
  endpointId: string,
  secret: string,
  keyring: Keyring,
): Promise<string> {
  const id = newId();
  const dataKey = await provideDataKey(await asQueryable(tx), keyring, tenantId);
  const sealedSecret = sealSecret(dataKey, { tenantId, endpointId, secretId: id }, secret);
  await tx.getRepository(EndpointSecret).insert({ tenantId, endpointId, id, sealedSecret });
  return id;
}
