import type { KeyHolder } from '#tenants';

type UsedKey = Pick<KeyHolder, 'tenantId' | 'keyId'>;

/** Uses of so long are gathered for one statement. */
const GATHER_MS = 1_000;
/** A key that was noted is not noted again for so long. */
const QUIET_MS = 60_000;
/** Keys in one statement; those beyond it are left out, and noted by a later use. */
const KEYS_MAX = 1_000;

/**
 * Notes which keys are used: roughly, late, and never in anybody's way. No request waits for it and none fails with it;
 * what a failure or a kill loses, a later use of the key says again. It says nothing of whether a key is good.
 */
export class KeyUse {
  readonly #write: (keys: readonly UsedKey[]) => Promise<void>;
  readonly #onError: (error: unknown) => void;
  readonly #notedAtMs = new Map<string, number>();
  #pending: UsedKey[] = [];
  #timer: NodeJS.Timeout | null = null;
  #writing: Promise<void> = Promise.resolve();

  constructor(write: (keys: readonly UsedKey[]) => Promise<void>, onError: (error: unknown) => void) {
    this.#write = write;
    this.#onError = onError;
  }

  /** Notes a use of a key. */
  note({ tenantId, keyId }: UsedKey): void {
    if (this.#notedAtMs.has(keyId)) {
      if (performance.now() - this.#notedAtMs.get(keyId)! < QUIET_MS) return;
      this.#notedAtMs.delete(keyId);
    }
    if (this.#pending.length >= KEYS_MAX) return;
    // Oldest first, so that the ones to forget stand in front.
    this.#notedAtMs.set(keyId, performance.now());
    this.#pending.push({ tenantId, keyId });
    this.#timer ??= setTimeout(() => this.#flush(), GATHER_MS).unref();
  }

  /** Writes what was gathered; resolves when nothing is under way any more. */
  async settled(): Promise<void> {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#flush();
    await this.#writing;
  }

  #flush(): void {
    this.#timer = null;
    for (const [keyId, atMs] of this.#notedAtMs) {
      if (performance.now() - atMs < QUIET_MS) break;
      this.#notedAtMs.delete(keyId);
    }
    const keys = this.#pending;
    this.#pending = [];
    // One after the other: a slow database gets one such statement at a time.
    if (keys.length > 0) this.#writing = this.#writing.then(() => this.#write(keys)).catch(this.#onError);
  }
}
