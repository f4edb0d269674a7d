import { connect, createServer, type NetConnectOpts, type Server, type Socket } from 'node:net';

import { listenOnLoopback } from './listen-on-loopback.js';
import { PgProxyConnection } from './pg-proxy-connection.js';
import { type Fault, type FaultHandle, FaultTable } from './pg-proxy-faults.js';

export type { Fault, FaultAction, FaultHandle, FaultMoment } from './pg-proxy-faults.js';

/** A TCP proxy in front of PostgreSQL that can fail at a named statement. Without a fault set it changes nothing. */
export interface PgProxy {
  /** The target's URL (credentials and database too) by way of the proxy. */
  readonly url: string;
  /** How many client connections are open. */
  readonly connections: number;
  /** Each SQL text that was executed through the proxy (simple Query or Bind) and how often. */
  readonly statements: ReadonlyMap<string, number>;
  /**
   * Sets a fault at every statement whose SQL holds `match`: simple queries, parsed ones, and named ones that are only
   * bound by now. One execution counts once. Of several faults the first that is set, live and matching fires.
   */
  on(match: string | RegExp, fault: Fault): FaultHandle;
  /** Ends all faults and releases what they hold. */
  clearFaults(): void;
  /** Resets every open connection, on both sides. */
  cutAll(): void;
  /** While on, connections are accepted but no byte and no close passes in any direction; then all of it does. */
  blackhole(on: boolean): void;
  /** While on, new connections are refused by the system (ECONNREFUSED); open ones go on. */
  refuse(on: boolean): Promise<void>;
  close(): Promise<void>;
}

/**
 * Starts a proxy on a loopback port of the system's choice in front of the PostgreSQL that `targetUrl` names. A function
 * is asked for each new connection: a server that restarts may come back on another port.
 */
export async function startPgProxy(targetUrl: string | (() => string)): Promise<PgProxy> {
  const currentUrl = typeof targetUrl === 'string' ? () => targetUrl : targetUrl;
  const faults = new FaultTable();
  const open = new Set<PgProxyConnection>();
  const statements = new Map<string, number>();
  let blackholed = false;

  const accept = (client: Socket): void => {
    const connection = new PgProxyConnection(
      client,
      connect(parseTarget(currentUrl())),
      {
        faults,
        onStatement: (sql) => statements.set(sql, (statements.get(sql) ?? 0) + 1),
        onOver: () => open.delete(connection),
      },
      blackholed,
    );
    open.add(connection);
  };

  let listener: Server | undefined = createServer(accept);
  const port = await listenOnLoopback(listener);
  const cutAll = (): void => {
    for (const connection of open) connection.cut();
  };
  const stopListening = (): void => {
    // Not awaited: close() calls back only when the last open connection has ended.
    listener?.close();
    listener = undefined;
  };

  return {
    url: proxiedUrl(currentUrl(), port),
    statements,
    get connections() {
      return open.size;
    },
    on: (match, fault) => faults.add(match, fault),
    clearFaults: () => faults.clear(),
    cutAll,
    blackhole(on) {
      blackholed = on;
      for (const connection of open) connection.freeze(on);
    },
    async refuse(on) {
      if (on) stopListening();
      if (on || listener) return;
      listener = createServer(accept);
      await listenOnLoopback(listener, port);
    },
    async close() {
      stopListening();
      cutAll();
    },
  };
}

function parseTarget(targetUrl: string): NetConnectOpts {
  const url = new URL(targetUrl);
  const port = Number(url.port || 5432);
  const host = url.searchParams.get('host') ?? decodeURIComponent(url.hostname);
  if (host.startsWith('/')) return { path: `${host}/.s.PGSQL.${port}` };
  return { host: host || '127.0.0.1', port };
}

function proxiedUrl(targetUrl: string, port: number): string {
  const url = new URL(targetUrl);
  url.searchParams.delete('host');
  url.hostname = '127.0.0.1';
  url.port = String(port);
  return url.href;
}
