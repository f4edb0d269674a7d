import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';

export interface ListenOptions {
  readonly url: string;
  readonly channel: string;
  readonly applicationName: string;
  onMessage(payload: string): void;
  /** Called after every (re)connect: what was said meanwhile is lost, so the listener should look for itself. */
  onConnected(): void;
  onLost(error: Error): void;
}

/** A LISTEN that mends itself. */
export interface Listener {
  stop(): Promise<void>;
}

const BACKOFF_MAX_MS = 5_000;

/**
 * Keeps one connection of its own on LISTEN, and makes a new one whenever it breaks, with backoff up to 5 s. It must
 * not lead through a transaction pooler. Messages are hints: nothing may depend on one arriving.
 */
export function listen(options: ListenOptions): Listener {
  const stopped = new AbortController();
  let client: pg.Client | null = null;

  async function run(): Promise<void> {
    for (let failures = 0; !stopped.signal.aborted; failures += 1) {
      try {
        client = new pg.Client({
          connectionString: options.url,
          application_name: options.applicationName,
          connectionTimeoutMillis: 5_000,
          query_timeout: 5_000,
          keepAlive: true,
        });
        const lost = new Promise<Error>((resolve) => {
          client!.on('error', resolve);
          client!.on('end', () => resolve(new Error('the LISTEN connection ended')));
        });
        client.on('notification', (message) => options.onMessage(message.payload ?? ''));
        await client.connect();
        await client.query(`listen ${pg.escapeIdentifier(options.channel)}`);
        failures = 0;
        options.onConnected();
        const error = await lost;
        if (!stopped.signal.aborted) options.onLost(error);
      } catch (error) {
        if (!stopped.signal.aborted) options.onLost(error as Error);
      }
      await client?.end().catch(() => undefined);
      await delay(Math.min(BACKOFF_MAX_MS, 100 * 2 ** failures), undefined, { signal: stopped.signal }).catch(
        () => undefined,
      );
    }
  }

  const running = run();
  return {
    async stop() {
      stopped.abort();
      await client?.end().catch(() => undefined);
      await running;
    },
  };
}
