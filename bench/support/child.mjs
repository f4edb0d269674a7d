import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { onCleanUp } from './cleanup.mjs';

const BENCH = fileURLToPath(new URL('..', import.meta.url));
const DIST = fileURLToPath(new URL('../../dist', import.meta.url));
const ENCRYPTION_KEY = Buffer.alloc(32, 7).toString('base64');
const STOP_MS = 5_000;
const ERROR_CHARACTERS = 2_000;
// What would turn a child into something else than it is in production, or point it at another database.
const NOT_INHERITED = /^(WAYBILL_|DATABASE_URL$|PG[A-Z]+$|VITEST|NODE_ENV$|NODE_OPTIONS$)/;

/** Starts one of the bench's own processes (`receiver-process.mjs`, a rival) and waits until it is ready. */
export function startBenchChild(file, env = {}) {
  return startChild(join(BENCH, file), env);
}

/** Starts the built api or dispatcher as it ships: its own defaults, its log at its default level to /dev/null. */
export function startApp(name, databaseUrl, env = {}) {
  return startChild(join(DIST, 'apps', name, 'src', 'main.js'), {
    DATABASE_URL: databaseUrl,
    WAYBILL_ENCRYPTION_KEY: ENCRYPTION_KEY,
    WAYBILL_PORT: '0',
    WAYBILL_DISPATCHER_PORT: '0',
    WAYBILL_EGRESS_ALLOW: '127.0.0.0/8',
    WAYBILL_ALLOW_HTTP: 'true',
    ...env,
  });
}

async function startChild(entry, env) {
  const child = spawn(process.execPath, [entry], {
    env: { ...inherited(), ...env },
    // It ends when the channel does, so it cannot outlive this process.
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  });
  let said = '';
  child.stderr.on('data', (chunk) => (said = (said + chunk).slice(-ERROR_CHARACTERS)));
  const exited = once(child, 'exit');
  const stop = onCleanUp(() => stopChild(child, exited));
  const replies = new Map();
  child.on('message', (message) => replies.get(message.id)?.(message));
  const ready = await Promise.race([readyMessage(child), exited.then(() => null)]);
  if (ready === null) {
    await stop();
    throw new Error(`${entry} ended before it was ready:\n${said}`);
  }
  let asked = 0;
  return {
    pid: child.pid,
    url: ready.url,
    /** Asks a bench child to do something and resolves with its answer. */
    async ask(name, input = {}) {
      asked += 1;
      const id = asked;
      const reply = new Promise((resolve) => {
        replies.set(id, resolve);
        child.send({ id, name, input }, (error) => error && resolve({ error: error.message }));
      });
      const answer = await Promise.race([reply, exited.then(() => ({ error: 'it has ended' }))]);
      replies.delete(id);
      if (answer.error !== undefined) throw new Error(`${entry}: ${name}: ${answer.error}`);
      return answer.output;
    },
    stop,
  };
}

function readyMessage(child) {
  return new Promise((resolve) => {
    child.on('message', (message) => message?.type === 'ready' && resolve(message));
  });
}

async function stopChild(child, exited) {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill('SIGTERM');
  if ((await Promise.race([exited, delay(STOP_MS, 'late', { ref: false })])) !== 'late') return;
  child.kill('SIGKILL');
  await exited;
}

function inherited() {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !NOT_INHERITED.test(name)));
}
