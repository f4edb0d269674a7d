import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { type EmbeddedPostgres, migrate, startEmbeddedPostgres } from '#runtime';
import type { Pool } from 'pg';

import { createTestPool } from './database.js';
import { type PgProxy, startPgProxy } from './pg-proxy.js';

/** PostgreSQL's own words: `fast` rolls back and disconnects, `immediate` stops as a crash does, `kill` is SIGKILL. */
export type StopMode = 'fast' | 'immediate' | 'kill';

const SIGNALS = { fast: 'SIGINT', immediate: 'SIGQUIT', kill: 'SIGKILL' } as const;

/** A PostgreSQL for one test, which may be stopped, killed and started again on the same data. */
export interface PrivatePostgres {
  /** A migrated database. It stays the same over restarts, since it leads through `proxy`. */
  readonly url: string;
  readonly proxy: PgProxy;
  /** The test's own connections, through the proxy as well. */
  readonly pool: Pool;
  /** The postmaster of this moment. */
  readonly pid: number;
  /** Stops the server; connections are refused until `start`. */
  stop(mode?: StopMode): Promise<void>;
  /** Starts it again after `stop` and lets connections in. */
  start(): Promise<void>;
  restart(mode?: StopMode): Promise<void>;
  /** Stops it and removes its data. For `afterAll`. */
  close(): Promise<void>;
}

/** Makes a server with a data folder of its own, migrated. Takes about 2 s. */
export async function startPrivatePostgres(): Promise<PrivatePostgres> {
  const folder = mkdtempSync(join(tmpdir(), 'waybill-private-'));
  // Under root the server runs as another account, which has to pass through here.
  chmodSync(folder, 0o755);
  const launch = (): Promise<EmbeddedPostgres> =>
    startEmbeddedPostgres({
      dataDir: join(folder, 'postgres'),
      // Every commit must outlive a kill of the server. It need not outlive the machine, so nothing is synced to disk.
      durable: true,
      settings: { fsync: 'off', full_page_writes: 'off', max_connections: '150' },
    });
  let server = await launch();
  let running = true;
  await migrate(server.url);
  const proxy = await startPgProxy(() => server.url);
  const pool = createTestPool(proxy.url);

  const stop = async (mode: StopMode = 'fast'): Promise<void> => {
    if (!running) return;
    running = false;
    await proxy.refuse(true);
    process.kill(server.pid, SIGNALS[mode]);
    await server.exited;
    // The process is gone; this gives back the lock of the data folder.
    await server.stop();
  };
  const start = async (): Promise<void> => {
    if (running) return;
    server = await launch();
    running = true;
    await proxy.refuse(false);
  };
  return {
    url: proxy.url,
    proxy,
    pool,
    get pid() {
      return server.pid;
    },
    stop,
    start,
    async restart(mode = 'fast') {
      await stop(mode);
      await start();
    },
    async close() {
      await pool.end();
      await stop('fast');
      await proxy.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
