import { closeSync, fstatSync, mkdirSync, openSync, readFileSync, realpathSync } from 'node:fs';
import { createServer } from 'node:net';
import { basename, dirname, join, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import {
  chooseServerAccount,
  placeDataDir,
  reachableBinaries,
  type ServerAccount,
} from './server-account.js';
import { findPostgresBinaries, type PostgresBinaries } from './binaries.js';
import { EMBEDDED_DATABASE, EMBEDDED_OWNER, ensureDatabase, prepareCluster } from './cluster.js';
import { startUnderWatchdog, type WatchedServer } from './watchdog.js';
import { clearOldPostmaster, readPostmasterPid, stopPostmaster } from './postmaster-pid.js';
import { takeProcessLock } from './process-lock.js';

/** A running embedded server. `exited` settles when the server is gone, asked for or not. */
export type EmbeddedPostgres = {
  readonly url: string;
  readonly pid: number;
  readonly exited: Promise<void>;
  stop(): Promise<void>;
};

/** Where and how the embedded server runs. `durable: false` turns fsync off and is for tests only. */
export type EmbeddedPostgresOptions = {
  readonly dataDir: string;
  readonly durable?: boolean;
  readonly settings?: Readonly<Record<string, string>>;
};

type Launch = {
  readonly binaries: PostgresBinaries;
  readonly account: ServerAccount;
  readonly dataDir: string;
  readonly logPath: string;
  readonly settings: Readonly<Record<string, string>>;
};

// Recovery after a crash replays at most max_wal_size (1 GB) before the server says `ready`.
const READY_MS = 120_000;
const RETRY_MS = 10_000;

const SETTINGS = {
  listen_addresses: '127.0.0.1',
  unix_socket_directories: '',
  shared_buffers: '128MB',
  max_connections: '100',
  timezone: 'UTC',
  log_timezone: 'UTC',
  cluster_name: 'waybill',
};
// Commits still outlive a kill of the server, only not a crash of the machine.
const FAST_AND_LOOSE = { fsync: 'off', full_page_writes: 'off' };

/**
 * Starts a real PostgreSQL on `dataDir` (made at the first start), on a loopback port picked by the system, and
 * returns its URL. The server never outlives this process; a second launcher on the same folder is refused.
 * Beside the folder lie its `.log`, its `.password` (0600) and its `.lock`.
 */
export async function startEmbeddedPostgres(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  const durable = options.durable ?? true;
  const installed = await findPostgresBinaries();
  const asked = realPath(options.dataDir);
  const unlock = takeProcessLock(`${asked}.lock`, `The embedded PostgreSQL in ${asked}`);
  try {
    const account = chooseServerAccount(asked);
    const dataDir = placeDataDir(asked, account);
    const binaries = reachableBinaries(installed, account, asked);
    const password = await prepareCluster(binaries, account, dataDir, `${asked}.password`, durable);
    await clearOldPostmaster(dataDir);
    const settings = { ...SETTINGS, ...(durable ? {} : FAST_AND_LOOSE), ...options.settings };
    const launched = await launchServer({ binaries, account, dataDir, logPath: `${asked}.log`, settings });
    const url = `postgresql://${EMBEDDED_OWNER}:${password}@127.0.0.1:${launched.port}/${EMBEDDED_DATABASE}`;
    const stop = stopOnce(launched, dataDir, unlock);
    try {
      await ensureDatabase(url);
    } catch (error) {
      await stop();
      throw error;
    }
    launched.server.unhold();
    return { url, pid: launched.pid, exited: launched.server.exited, stop };
  } catch (error) {
    unlock();
    throw error;
  }
}

// The system names a process's folder by its real path, so a link above the data must not hide a running server.
function realPath(dataDir: string): string {
  const parent = dirname(resolve(dataDir));
  mkdirSync(parent, { recursive: true });
  return join(realpathSync(parent), basename(resolve(dataDir)));
}

function stopOnce(launched: RunningServer, dataDir: string, unlock: () => void): () => Promise<void> {
  let stopping: Promise<void> | undefined;
  const stop = async () => {
    launched.server.hold();
    launched.server.letGo();
    await Promise.race([launched.server.exited, delay(RETRY_MS, undefined, { ref: false })]);
    // Does nothing in the ordinary case; else the watchdog is dead, or the shutdown hangs.
    await stopPostmaster(launched.pid, dataDir);
    await launched.server.exited;
    unlock();
  };
  return () => (stopping ??= stop());
}

type RunningServer = { readonly server: WatchedServer; readonly pid: number; readonly port: number };

// Two causes pass by themselves: another process took the port between our look and postgres' bind, and backends of a
// killed server still hold its shared memory until they notice.
const PASSING_CAUSE =
  /could not bind|Address already in use|pre-existing shared memory block|lock file "postmaster\.pid"/;

async function launchServer(launch: Launch): Promise<RunningServer> {
  const deadline = performance.now() + RETRY_MS;
  for (;;) {
    const port = await pickPort();
    const logFd = openSync(launch.logPath, 'a', 0o600);
    const logStart = fstatSync(logFd).size;
    const settings = Object.entries({ ...launch.settings, port: String(port) });
    const flags = settings.flatMap(([name, value]) => ['-c', `${name}=${value}`]);
    const command = [launch.binaries.postgres, '-D', launch.dataDir, ...flags];
    const server = startUnderWatchdog(command, launch.account, logFd);
    closeSync(logFd);
    const pid = await server.pid;
    if (await becomesReady(server, pid, launch.dataDir)) return { server, pid, port };
    const said = readFileSync(launch.logPath).subarray(logStart).toString('utf8').trim();
    if (!PASSING_CAUSE.test(said) || performance.now() > deadline) {
      throw new Error(
        `The embedded PostgreSQL did not start; ${launch.logPath} ends with:\n${said.slice(-2_000)}`,
      );
    }
    await delay(100);
  }
}

async function becomesReady(server: WatchedServer, pid: number, dataDir: string): Promise<boolean> {
  const gone = new AbortController();
  void server.exited.then(() => gone.abort());
  const deadline = performance.now() + READY_MS;
  while (!gone.signal.aborted && performance.now() < deadline) {
    const current = readPostmasterPid(dataDir);
    if (current?.pid === pid && current.ready) return true;
    await delay(10);
  }
  server.letGo();
  await server.exited;
  return false;
}

function pickPort(): Promise<number> {
  return new Promise((settle, fail) => {
    const probe = createServer();
    probe.once('error', fail);
    probe.listen(0, '127.0.0.1', () => {
      const address = probe.address();
      probe.close(() => settle(typeof address === 'object' ? (address?.port ?? 0) : 0));
    });
  });
}
