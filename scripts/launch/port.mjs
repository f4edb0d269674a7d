import { createServer } from 'node:net';

/** Tells whether a port of `host` is free to listen on right now. */
export function isPortFree(host, port) {
  return new Promise((settle) => {
    const probe = createServer();
    probe.once('error', (error) => settle(error.code !== 'EADDRINUSE'));
    probe.listen(port, host, () => probe.close(() => settle(true)));
  });
}
