import process from 'node:process';

const PARENT_POLL_MS = 500;

/**
 * Calls `stop(reason)` on Ctrl-C, SIGTERM or SIGHUP, and when the npm that started us is gone: a SIGTERM to npm ends
 * npm and its shell but reaches nobody else.
 */
export function onStopSignal(stop) {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => stop(signal));
  if (!process.env.npm_lifecycle_event) return;
  const parent = process.ppid;
  const poll = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(poll);
    stop('npm is gone');
  }, PARENT_POLL_MS);
  poll.unref();
}
