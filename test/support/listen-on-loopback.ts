import { once } from 'node:events';
import type { Server } from 'node:net';

/** Makes a server listen on 127.0.0.1, on a port of the system's choice unless one is given; resolves with the port. */
export async function listenOnLoopback(server: Server, port = 0): Promise<number> {
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the server listens on no port');
  return address.port;
}
