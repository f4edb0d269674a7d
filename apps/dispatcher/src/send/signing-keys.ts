import type { KeyObject } from 'node:crypto';
import type { ClaimedDelivery } from '#outbox';
import { secretKey, signingKey } from '#signing';
import { UnreadableSecretError, type OpenedSecret } from './open-secrets.js';

/** Reads an endpoint's live secrets as text. */
export type ReadSecrets = (tenantId: string, endpointId: string) => Promise<readonly OpenedSecret[]>;

interface LiveKey {
  readonly key: KeyObject;
  readonly expiresAtMs: number | null;
}

interface CachedKeys {
  readonly secretsVersion: number;
  readonly keys: Promise<readonly LiveKey[]>;
  /** When it is to be read anew although nothing changed. */
  staleAtMs: number;
}

const ENDPOINTS_KEPT = 10_000;
/** How long a copy is good in which a secret is about to end, or does not open: the database has the last word. */
const UNSETTLED_MS = 1_000;

/** A secret that cannot sign: nothing a retry would mend. */
export class UnusableSecretError extends Error {}

/**
 * Keeps endpoints' secrets as ready keys. The claim brings the secrets' version, so a changed secret is read anew by
 * the first delivery that knows of it, and no delivery waits for a cache to grow old. A secret that ends does so by the
 * database's clock, and without a new version.
 */
export class SigningKeys {
  readonly #read: ReadSecrets;
  readonly #cache = new Map<string, CachedKeys>();

  constructor(read: ReadSecrets) {
    this.#read = read;
  }

  /**
   * The keys to sign a delivery with now, by the database's clock. Throws UnusableSecretError when there is none that
   * can, and UnreadableSecretError when one does not open.
   */
  async of(delivery: ClaimedDelivery, nowMs: number): Promise<readonly KeyObject[]> {
    const live = await this.#cached(delivery, nowMs);
    const keys = live.filter(({ expiresAtMs }) => expiresAtMs === null || expiresAtMs > nowMs);
    if (keys.length === 0) throw new UnusableSecretError('the endpoint has no live secret');
    return keys.map(({ key }) => key);
  }

  #cached(
    { tenantId, endpointId, endpoint: { secretsVersion } }: ClaimedDelivery,
    nowMs: number,
  ): Promise<readonly LiveKey[]> {
    const known = this.#cache.get(endpointId);
    // A delivery that was claimed before the last change is signed as after it: what was revoked is not used again.
    if (known !== undefined && known.secretsVersion >= secretsVersion && nowMs < known.staleAtMs)
      return known.keys;
    const keys = this.#read(tenantId, endpointId).then(toKeys);
    const cached: CachedKeys = { secretsVersion, keys, staleAtMs: Infinity };
    this.#cache.delete(endpointId);
    this.#cache.set(endpointId, cached);
    if (this.#cache.size > ENDPOINTS_KEPT) this.#cache.delete(this.#cache.keys().next().value!);
    keys.then(
      (live) => {
        if (live.some(({ expiresAtMs }) => expiresAtMs !== null)) cached.staleAtMs = nowMs + UNSETTLED_MS;
      },
      (error: unknown) => {
        // Kept for a moment: all that was claimed with it would ask one by one.
        if (error instanceof UnreadableSecretError) cached.staleAtMs = nowMs + UNSETTLED_MS;
        else if (this.#cache.get(endpointId) === cached) this.#cache.delete(endpointId);
      },
    );
    return keys;
  }
}

function toKeys(secrets: readonly OpenedSecret[]): LiveKey[] {
  return secrets.map(({ text, expiresAtMs }) => {
    const parsed = secretKey(text);
    if (!parsed.ok) throw new UnusableSecretError(`a stored secret cannot sign: ${parsed.reason}`);
    return { key: signingKey(parsed.key), expiresAtMs };
  });
}
