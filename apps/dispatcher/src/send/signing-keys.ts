import type { KeyObject } from 'node:crypto';
import type { ClaimedDelivery } from '#outbox';
import { secretKey, signingKey } from '#signing';

/** Reads an endpoint's live secrets as text. */
export type ReadSecrets = (tenantId: string, endpointId: string) => Promise<readonly string[]>;

interface CachedKeys {
  readonly secretsVersion: number;
  readonly keys: Promise<readonly KeyObject[]>;
}

const ENDPOINTS_KEPT = 10_000;

/** A secret that cannot sign: nothing a retry would mend. */
export class UnusableSecretError extends Error {}

/**
 * Keeps endpoints' secrets as ready keys. The claim brings the secrets' version, so a changed secret is read anew by
 * the first delivery that knows of it, and no delivery waits for a cache to grow old.
 */
export class SigningKeys {
  readonly #read: ReadSecrets;
  readonly #cache = new Map<string, CachedKeys>();

  constructor(read: ReadSecrets) {
    this.#read = read;
  }

  /** The keys to sign a delivery with; throws UnusableSecretError when there is none that can. */
  of({ tenantId, endpointId, endpoint: { secretsVersion } }: ClaimedDelivery): Promise<readonly KeyObject[]> {
    const cached = this.#cache.get(endpointId);
    if (cached?.secretsVersion === secretsVersion) return cached.keys;
    const keys = this.#read(tenantId, endpointId).then(toKeys);
    this.#cache.delete(endpointId);
    this.#cache.set(endpointId, { secretsVersion, keys });
    if (this.#cache.size > ENDPOINTS_KEPT) this.#cache.delete(this.#cache.keys().next().value!);
    keys.catch(() => {
      if (this.#cache.get(endpointId)?.keys === keys) this.#cache.delete(endpointId);
    });
    return keys;
  }
}

function toKeys(secrets: readonly string[]): KeyObject[] {
  if (secrets.length === 0) throw new UnusableSecretError('the endpoint has no live secret');
  return secrets.map((secret) => {
    const parsed = secretKey(secret);
    if (!parsed.ok) throw new UnusableSecretError(`a stored secret cannot sign: ${parsed.reason}`);
    return signingKey(parsed.key);
  });
}
