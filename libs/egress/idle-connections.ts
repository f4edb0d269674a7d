import { KEEP_ALIVE_MS, type Connection } from './connection.js';

const MAX_IDLE = 2_048;
const SWEEP_EVERY_MS = 1_000;

/**
 * The unused connections of a sender, by pool (tenant and origin). The last returned goes out first, so that what is
 * not needed grows old and is closed; a pool without connections takes no memory. At most 2,048 are kept in all.
 */
export class IdleConnections {
  readonly #pools = new Map<string, Connection[]>();
  readonly #sweeper: NodeJS.Timeout;
  #count = 0;

  constructor() {
    this.#sweeper = setInterval(() => this.closeOlderThan(performance.now() - KEEP_ALIVE_MS), SWEEP_EVERY_MS);
    this.#sweeper.unref();
  }

  /** How many are kept now. */
  get count(): number {
    return this.#count;
  }

  take(poolKey: string): Connection | undefined {
    const pool = this.#pools.get(poolKey);
    const connection = pool?.pop();
    if (connection === undefined) return undefined;
    this.#count -= 1;
    return connection;
  }

  giveBack(connection: Connection): void {
    if (this.#count >= MAX_IDLE) {
      connection.destroy();
      return;
    }
    connection.idleSinceMs = performance.now();
    const pool = this.#pools.get(connection.poolKey);
    if (pool) pool.push(connection);
    else this.#pools.set(connection.poolKey, [connection]);
    this.#count += 1;
  }

  /** Closes what came back before that moment. Each pool is sorted by it, oldest first. */
  closeOlderThan(momentMs: number): void {
    for (const [key, pool] of this.#pools) {
      const young = pool.findIndex((connection) => connection.idleSinceMs > momentMs);
      const old = pool.splice(0, young === -1 ? pool.length : young);
      for (const connection of old) connection.destroy();
      this.#count -= old.length;
      if (pool.length === 0) this.#pools.delete(key);
    }
  }

  /** Closes all, and stops the sweep. */
  close(): void {
    clearInterval(this.#sweeper);
    this.closeOlderThan(Number.POSITIVE_INFINITY);
  }
}
