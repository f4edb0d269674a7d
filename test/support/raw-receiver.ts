import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';

import { listenOnLoopback } from './listen-on-loopback.js';

/** A bare TCP server for answers that no HTTP library would send. */
export interface RawReceiver {
  readonly url: string;
  readonly port: number;
  /** How many connections were accepted in all. */
  readonly connections: number;
  /** What each connection has sent so far, in order of their coming. */
  received(): Buffer[];
  close(): Promise<void>;
}

/** Starts one on 127.0.0.1. `handler` gets each connection and its number (from 1) and writes whatever bytes it likes. */
export async function startRawReceiver(
  handler: (socket: Socket, number: number) => void,
): Promise<RawReceiver> {
  const open = new Set<Socket>();
  const received: Buffer[][] = [];
  const server = createServer((socket) => {
    const chunks: Buffer[] = [];
    received.push(chunks);
    open.add(socket);
    // The sender may reset at any time, which is no fault of the test.
    socket.on('error', () => undefined);
    socket.on('data', (chunk: Buffer) => chunks.push(chunk));
    socket.on('close', () => open.delete(socket));
    handler(socket, received.length);
  });
  const port = await listenOnLoopback(server);
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    get connections() {
      return received.length;
    },
    received: () => received.map((chunks) => Buffer.concat(chunks)),
    close: async () => {
      const closed = once(server, 'close');
      server.close();
      for (const socket of open) socket.destroy();
      await closed;
    },
  };
}
