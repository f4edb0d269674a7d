import type { Connection } from './connection.js';
import { KEEP_ALIVE_MS } from './response-framing.js';

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

  /** The one that came back last and is open and young enough, if there is one. */
  take(poolKey: string): Connection | undefined {
    const pool = this.#pools.get(poolKey);
    if (pool === undefined) return undefined;
    const tooOldMs = performance.now() - KEEP_ALIVE_MS;
    for (let connection = pool.pop(); connection !== undefined; connection = pool.pop()) {
      this.#count -= 1;
      if (!connection.isClosed && connection.idleSinceMs > tooOldMs) return connection;
      connection.destroy();
    }
    return undefined;
  }

  /** Keeps it this long at most; a receiver that keeps its side shorter than we do has said so. */
  giveBack(connection: Connection, keepMs = KEEP_ALIVE_MS): void {
    if (this.#count >= MAX_IDLE) {
      connection.destroy();
      return;
    }
    // What may stay for a shorter time counts as older than it is, so that one moment decides for all.
    connection.idleSinceMs = performance.now() + keepMs - KEEP_ALIVE_MS;
    const pool = this.#pools.get(connection.poolKey);
    if (pool) pool.push(connection);
    else this.#pools.set(connection.poolKey, [connection]);
    this.#count += 1;
  }

  /** Closes what came back before that moment, and forgets what its receiver has closed. */
  closeOlderThan(momentMs: number): void {
    for (const [key, pool] of this.#pools) {
      const kept = pool.filter((connection) => {
        const stays = !connection.isClosed && connection.idleSinceMs > momentMs;
        if (!stays) connection.destroy();
        return stays;
      });
      this.#count -= pool.length - kept.length;
      if (kept.length === 0) this.#pools.delete(key);
      else if (kept.length < pool.length) this.#pools.set(key, kept);
    }
  }

  /** Closes all, and stops the sweep. */
  close(): void {
    clearInterval(this.#sweeper);
    this.closeOlderThan(Number.POSITIVE_INFINITY);
  }
}
