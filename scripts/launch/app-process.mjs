import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { followFile } from './follow-file.mjs';

const LINES_KEPT = 20;

/**
 * Starts one built app with an ipc channel, by whose end it notices that we died. With a `logPath` it writes there and
 * we read along for `onLine`; without one it writes where we do. Not by a pipe: when we are killed, an app that logs
 * into a broken pipe cannot stop in peace.
 */
export function startApp({ name, entry, cwd, env, logPath, onLine }) {
  const output = logPath ? openSync(logPath, 'a', 0o600) : 'inherit';
  const lastLines = [];
  const keep = (line) => {
    lastLines.push(line);
    if (lastLines.length > LINES_KEPT) lastLines.shift();
    onLine(line);
  };
  const unfollow = logPath ? followFile(logPath, keep) : () => undefined;
  const child = spawn(process.execPath, [entry], { cwd, env, stdio: ['ignore', output, output, 'ipc'] });
  if (logPath) closeSync(output);
  const exited = once(child, 'exit').then(([code, signal]) => {
    unfollow();
    return { code, signal };
  });
  const ready = new Promise((settle, fail) => {
    child.on('message', (message) => message?.type === 'ready' && settle(message.url));
    void exited.then(
      (end) => fail(new Error(describeEnd(name, end, lastLines))),
      (error) => fail(new Error(`${name} does not start: ${error.message}`)),
    );
  });
  // Whoever waits for the other app first must not be told of an unhandled rejection.
  ready.catch(() => undefined);
  return {
    name,
    ready,
    exited,
    describeEnd: (end) => describeEnd(name, end, lastLines),
    stop: (graceMs) => stop(child, exited, graceMs),
    kill: () => child.kill('SIGKILL'),
  };
}

async function stop(child, exited, graceMs) {
  if (child.exitCode !== null || child.signalCode !== null) return true;
  child.kill('SIGTERM');
  const late = delay(graceMs, 'late', { ref: false });
  if ((await Promise.race([exited, late])) !== 'late') return true;
  child.kill('SIGKILL');
  await exited;
  return false;
}

function describeEnd(name, { code, signal }, lastLines) {
  const how = signal ? `was ended by ${signal}` : `ended with exit code ${code}`;
  const said = lastLines.length > 0 ? `; it last said:\n${lastLines.slice(-8).join('\n')}` : '';
  return `${name} ${how}${said}`;
}
