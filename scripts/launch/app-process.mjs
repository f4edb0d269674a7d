import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';

const LINES_KEPT = 20;

/**
 * Starts one built app with an ipc channel, by whose end it notices that we died. With a `logPath` its output goes
 * there in full and to `onLine` line by line; without one it goes where ours goes.
 */
export function startApp({ name, entry, cwd, env, logPath, onLine }) {
  const output = logPath ? 'pipe' : 'inherit';
  const child = spawn(process.execPath, [entry], { cwd, env, stdio: ['ignore', output, output, 'ipc'] });
  const lastLines = [];
  const drained = logPath ? follow(child, logPath, lastLines, onLine) : Promise.resolve();
  const exited = once(child, 'exit').then(async ([code, signal]) => {
    await drained;
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

function follow(child, logPath, lastLines, onLine) {
  const log = createWriteStream(logPath, { flags: 'a', mode: 0o600 });
  const streams = [child.stdout, child.stderr].map((stream) => {
    const lines = createInterface({ input: stream, crlfDelay: Infinity });
    lines.on('line', (line) => {
      log.write(`${line}\n`);
      lastLines.push(line);
      if (lastLines.length > LINES_KEPT) lastLines.shift();
      onLine(line);
    });
    return once(lines, 'close');
  });
  return Promise.all(streams).then(() => new Promise((settle) => log.end(settle)));
}

function describeEnd(name, { code, signal }, lastLines) {
  const how = signal ? `was ended by ${signal}` : `ended with exit code ${code}`;
  const said = lastLines.length > 0 ? `; it last said:\n${lastLines.slice(-8).join('\n')}` : '';
  return `${name} ${how}${said}`;
}
