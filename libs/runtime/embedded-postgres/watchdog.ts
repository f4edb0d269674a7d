import { spawn } from 'node:child_process';
import { Socket } from 'node:net';
import { Readable } from 'node:stream';
import type { ServerAccount } from './server-account.js';
import { serverEnvironment } from './cluster.js';

/** A server under its watchdog. `exited` settles when both are gone; `letGo` asks for a fast shutdown. */
export type WatchedServer = {
  readonly pid: Promise<number>;
  readonly exited: Promise<void>;
  letGo(): void;
  hold(): void;
  unhold(): void;
};

// Descriptor 0 is a pipe that only our process holds open: when we die, in whatever way, it ends, and the reader
// tells postgres to shut down fast. The reader is a process of its own, so killing the watchdog alone changes nothing.
// It repeats itself because postgres is deaf to the signal for the few milliseconds before it has set its handlers.
const WATCHDOG = `
exec 4<&0 </dev/null
"$@" 3>&- 4<&- &
server=$!
trap '' HUP INT TERM
echo "$server" >&3
exec 3>&-
( while read -r _; do :; done; while kill -INT "$server"; do sleep 1; done ) <&4 2>/dev/null &
reader=$!
exec 4<&-
wait "$server"
kill -KILL "$reader"
`;

/** Starts `command` under a watchdog in a process group of its own, which Ctrl-C on our terminal does not reach. */
export function startUnderWatchdog(
  command: readonly string[],
  account: ServerAccount,
  logFd: number,
): WatchedServer {
  const watchdog = spawn('/bin/sh', ['-c', WATCHDOG, 'waybill-postgres-watchdog', ...command], {
    ...account,
    cwd: '/',
    env: serverEnvironment(),
    detached: true,
    stdio: ['pipe', logFd, logFd, 'pipe'],
  });
  const lifeline = watchdog.stdin;
  const pidChannel = watchdog.stdio[3];
  if (!lifeline || !(pidChannel instanceof Readable)) throw new Error('the watchdog has no pipes');
  // The pipe breaks when postgres ends first; `exited` tells of that.
  lifeline.on('error', () => undefined);
  return {
    pid: readServerPid(pidChannel),
    exited: new Promise((settle) => {
      watchdog.once('exit', () => settle());
      watchdog.once('error', () => settle());
    }),
    letGo: () => lifeline.end(),
    hold: () => watchdog.ref(),
    unhold: () => {
      watchdog.unref();
      if (lifeline instanceof Socket) lifeline.unref();
    },
  };
}

async function readServerPid(channel: Readable): Promise<number> {
  let text = '';
  for await (const chunk of channel) text += String(chunk);
  return Number.parseInt(text, 10);
}
