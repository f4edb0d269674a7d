import { startBenchChild } from './child.mjs';

/** Receivers in a process of their own. `open` gives the URLs of so many new ones, each an origin of its own. */
export async function startReceiver() {
  const child = await startBenchChild('support/receiver-process.mjs');
  return {
    pid: child.pid,
    async open(count, mode = 'ok') {
      const ports = await child.ask('open', { count, mode });
      return ports.map((port) => `http://127.0.0.1:${port}/hook`);
    },
    /** How many requests came since the last reset, and when the first and the last. */
    arrivals: () => child.ask('arrivals'),
    reset: () => child.ask('reset'),
    stop: child.stop,
  };
}
