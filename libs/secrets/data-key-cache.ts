import type { KeyObject } from 'node:crypto';

/** Reads one of a tenant's data keys. */
export type ReadKey = (tenantId: string, version: number) => Promise<KeyObject>;

const KEYS_KEPT = 10_000;

/**
 * Keeps tenants' data keys as ready keys, by their version: a data key never changes, only how it is wrapped. Bounded;
 * the one that was read longest ago goes first. A failed read is not kept.
 */
export class DataKeyCache {
  readonly #read: ReadKey;
  readonly #keys = new Map<string, Promise<KeyObject>>();

  constructor(read: ReadKey) {
    this.#read = read;
  }

  /** The tenant's data key of this version; rejects as the read does. */
  of(tenantId: string, version: number): Promise<KeyObject> {
    const name = `${tenantId}/${version}`;
    const known = this.#keys.get(name);
    if (known !== undefined) return known;
    const key = this.#read(tenantId, version);
    this.#keys.set(name, key);
    if (this.#keys.size > KEYS_KEPT) this.#keys.delete(this.#keys.keys().next().value!);
    key.catch(() => {
      if (this.#keys.get(name) === key) this.#keys.delete(name);
    });
    return key;
  }
}
