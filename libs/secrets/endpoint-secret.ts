import type { KeyObject } from 'node:crypto';
import type { DataKey } from './data-keys.js';
import { keyVersionOf, open, seal, type Place } from './envelope.js';

/** Which row of waybill.endpoint_secrets. */
export interface SecretRef {
  readonly tenantId: string;
  readonly endpointId: string;
  readonly secretId: string;
}

/** Seals the text of an endpoint's secret for its row. */
export function sealSecret({ version, key }: DataKey, secret: SecretRef, text: string): Buffer {
  return seal(key, version, placeOf(secret), Buffer.from(text, 'utf8'));
}

/**
 * Opens an endpoint's sealed secret with the data key that `keyOf` finds for the version it names; throws
 * `secret_unreadable` when it does not open.
 */
export async function openSecret(
  secret: SecretRef,
  sealed: Buffer,
  keyOf: (version: number) => Promise<KeyObject>,
): Promise<string> {
  const key = await keyOf(keyVersionOf(sealed));
  return open(key, placeOf(secret), sealed).toString('utf8');
}

function placeOf({ tenantId, endpointId, secretId }: SecretRef): Place {
  return {
    table: 'endpoint_secrets',
    column: 'sealed_secret',
    tenantId,
    rowId: `${endpointId}/${secretId}`,
  };
}
