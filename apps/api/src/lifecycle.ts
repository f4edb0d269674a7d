import type { Server, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';

/** Readiness is red for this long before the port closes, so that whoever polls it can stop sending first. */
const RED_MS = 500;
const SWEEP_MS = 50;

/**
 * The life of the process as its requests see it. Running → stopping (readiness red, still serving) → closed (no new
 * connection; every open request gets its answer).
 */
export class Lifecycle {
  private readonly open = new Set<ServerResponse>();
  private stopped = false;

  /** True from the moment the process was asked to stop. */
  get stopping(): boolean {
    return this.stopped;
  }

  /** Requests that have no complete answer yet. */
  get openCount(): number {
    return this.open.size;
  }

  /** The requests of a connection that have no complete answer yet, in the order in which they came. */
  openOn(socket: Duplex): ServerResponse[] {
    return [...this.open].filter((response) => response.req.socket === socket);
  }

  /** Counts a request until its answer is out or its connection is gone. */
  track(response: ServerResponse): void {
    this.open.add(response);
    response.once('close', () => this.open.delete(response));
    if (this.stopped) response.setHeader('connection', 'close');
  }

  /** Resolves when the server is closed; connections that are still open after `graceMs` are cut. */
  async stop(server: Server, graceMs: number): Promise<void> {
    this.stopped = true;
    for (const response of this.open) if (!response.headersSent) response.setHeader('connection', 'close');
    const deadline = setTimeout(() => server.closeAllConnections(), graceMs);
    await new Promise((resolve) => setTimeout(resolve, Math.min(RED_MS, graceMs / 2)));
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    // A connection that was kept alive before the stop is idle, and so closable, only once its answer is out.
    const sweep = setInterval(() => server.closeIdleConnections(), SWEEP_MS);
    await closed;
    clearInterval(sweep);
    clearTimeout(deadline);
  }
}
